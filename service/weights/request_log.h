#ifndef PLANEWISE_SERVICE_WEIGHTS_REQUEST_LOG_H_
#define PLANEWISE_SERVICE_WEIGHTS_REQUEST_LOG_H_
// What requests with an id made, so that a repeated one gets the same answer
// and changes nothing. Failures are not remembered: they changed nothing.

#include <deque>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "core/base/error.h"

namespace planewise {

// The error for an id that named another request before.
inline absl::Status OtherRequest(const std::string& id) {
  return Error(Reason::kInvalidRequest,
               absl::StrCat("field request_id: \"", id, "\" was used before for another request; "
                            "use a new one for each"));
}

// One thread. Forgets the oldest beyond its capacity. Keys are the caller's; an
// empty one is never found.
template <typename Spec, typename Result>
class RequestLog {
 public:
  explicit RequestLog(int capacity) : capacity_(static_cast<size_t>(capacity)) {}

  // nullptr if no such request is remembered. INVALID_ARGUMENT / INVALID_REQUEST
  // if it asked for something else.
  absl::StatusOr<const Result*> Find(const std::string& key, const Spec& spec) const {
    const auto found = entries_.find(key);
    if (key.empty() || found == entries_.end()) return nullptr;
    if (!(found->second.first == spec)) return OtherRequest(spec.request_id);
    return &found->second.second;
  }

  void Remember(const std::string& key, Spec spec, Result result) {
    if (key.empty() || capacity_ == 0) return;
    if (entries_.size() == capacity_) {
      entries_.erase(order_.front());
      order_.pop_front();
    }
    if (entries_.emplace(key, std::pair(std::move(spec), std::move(result))).second) {
      order_.push_back(key);
    }
  }

 private:
  const size_t capacity_;
  absl::flat_hash_map<std::string, std::pair<Spec, Result>> entries_;
  std::deque<std::string> order_;
};

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_WEIGHTS_REQUEST_LOG_H_
