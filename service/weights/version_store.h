#ifndef PLANEWISE_SERVICE_WEIGHTS_VERSION_STORE_H_
#define PLANEWISE_SERVICE_WEIGHTS_VERSION_STORE_H_
// The versions of one model that are in memory: the newest, and superseded ones
// for as long as somebody leases them. Publishing is the only way to change
// what new readers see.
//
// Not here: building a version (model_loader.h, mode_switcher.h), when a lease
// is taken back (retention_policy.h).

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/strong_int.h"
#include "core/layer/model_version.h"
#include "service/weights/retention_policy.h"
#include "service/weights/weight_lease.h"

namespace planewise {

// One thread. Leases may outlive it.
class VersionStore {
 public:
  // `clock` outlives it.
  VersionStore(const Clock& clock, std::shared_ptr<const ModelVersion> first);

  // Makes `next`, whose number is higher, the newest.
  void Publish(std::shared_ptr<const ModelVersion> next);
  const std::shared_ptr<const ModelVersion>& newest() const { return newest_; }

  // Pins `request.version`, or the newest. NOT_FOUND if it is none of the live
  // ones, which are named.
  absl::StatusOr<WeightLease> Lease(LeaseRequest request);

  // As LeaseList::Revoke.
  void Revoke(WeightVersion version) { leases_->Revoke(version); }

  // Versions that are held, oldest first.
  std::vector<HeldVersion> Held() const;
  int lease_count() const { return static_cast<int>(leases_->active().size()); }
  // Saved operands not consumed yet whose backward reads the column plane, by
  // layer.
  std::map<std::string, int64_t, std::less<>> ColumnOperands() const;

 private:
  std::shared_ptr<const ModelVersion> Find(WeightVersion version) const;

  const Clock& clock_;
  std::shared_ptr<const ModelVersion> newest_;
  std::shared_ptr<LeaseList> leases_;
};

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_WEIGHTS_VERSION_STORE_H_
