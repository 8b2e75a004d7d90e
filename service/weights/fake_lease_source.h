#ifndef PLANEWISE_SERVICE_WEIGHTS_FAKE_LEASE_SOURCE_H_
#define PLANEWISE_SERVICE_WEIGHTS_FAKE_LEASE_SOURCE_H_
// Models for tests of sessions: versions are published by hand.

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "service/weights/version_store.h"
#include "service/weights/weight_lease.h"

namespace planewise {

// One thread.
class FakeLeaseSource final : public LeaseSource {
 public:
  // `clock` outlives it.
  explicit FakeLeaseSource(const Clock& clock) : clock_(clock) {}

  // Makes `version` the newest of its model.
  void Publish(std::shared_ptr<const ModelVersion> version) {
    const std::string name = version->model;
    const auto found = models_.find(name);
    if (found != models_.end()) return found->second->Publish(std::move(version));
    models_[name] = std::make_unique<VersionStore>(clock_, std::move(version));
  }
  void Remove(const std::string& name) { models_.erase(name); }
  VersionStore& versions(const std::string& name) { return *models_.at(name); }

  absl::StatusOr<WeightLease> Lease(LeaseRequest request) override {
    const auto found = models_.find(request.model);
    if (found == models_.end()) {
      return Error(Reason::kNotFound, absl::StrCat("model \"", request.model, "\": not hosted"));
    }
    return found->second->Lease(std::move(request));
  }

 private:
  const Clock& clock_;
  std::map<std::string, std::unique_ptr<VersionStore>> models_;
};

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_WEIGHTS_FAKE_LEASE_SOURCE_H_
