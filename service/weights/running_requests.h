#ifndef PLANEWISE_SERVICE_WEIGHTS_RUNNING_REQUESTS_H_
#define PLANEWISE_SERVICE_WEIGHTS_RUNNING_REQUESTS_H_
// Jobs that run for requests with an id, so that a repeated request joins the
// job of the first one.
//
// Not here: requests that have ended (request_log.h).

#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "service/weights/catalog_job.h"
#include "service/weights/request_log.h"

namespace planewise {

// One thread. Requests without an id (an empty key) are never found.
template <typename Spec, typename T>
class RunningRequests {
 public:
  using Job = CatalogJob<T>;

  // The job to join; nullptr if none runs. INVALID_ARGUMENT / INVALID_REQUEST if
  // it does something else; UNAVAILABLE if all who waited for it have gone.
  absl::StatusOr<std::shared_ptr<Job>> Find(const std::string& key, const Spec& spec) const {
    const auto found = entries_.find(key);
    if (key.empty() || found == entries_.end()) return nullptr;
    if (!(found->second.first == spec)) return OtherRequest(spec.request_id);
    if (found->second.second->cancelled()) {
      return Error(Reason::kUnavailable,
                   absl::StrCat("request \"", spec.request_id, "\" was given up by its caller and "
                                "is being undone; send it again"))
          .WithRetryDelayMs(100);
    }
    return found->second.second;
  }

  void Add(const std::string& key, Spec spec, std::shared_ptr<Job> job) {
    if (!key.empty()) entries_.emplace(key, std::pair(std::move(spec), std::move(job)));
  }
  void Remove(const std::string& key) { entries_.erase(key); }

  // False: none runs.
  bool GiveUp(const std::string& key) {
    const auto found = entries_.find(key);
    if (found == entries_.end()) return false;
    found->second.second->AbandonAll();
    return true;
  }

 private:
  absl::flat_hash_map<std::string, std::pair<Spec, std::shared_ptr<Job>>> entries_;
};

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_WEIGHTS_RUNNING_REQUESTS_H_
