#ifndef PLANEWISE_SERVICE_WEIGHTS_WEIGHT_LEASE_H_
#define PLANEWISE_SERVICE_WEIGHTS_WEIGHT_LEASE_H_
// A reader's pin on one version of a model, and where to get one.
//
// Not here: which versions are live (version_store.h), when a lease is taken
// back (retention_policy.h).

#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/strong_int.h"
#include "core/layer/model_version.h"

namespace planewise {

// What a lease is held for.
enum class LeaseUse : uint8_t {
  kStep,           // forwards of one step
  kOperand,        // a saved operand whose backward reads no column plane
  kColumnOperand,  // a saved operand whose backward reads the column plane
  kRead,           // ReadWeights, save, verify
};

struct LeaseRequest {
  std::string model;
  WeightVersion version;  // 0: the newest
  LeaseUse use = LeaseUse::kStep;
  std::string holder;  // for people, for example "session 7, step 3"
  // Runs on the executor if the lease is taken back; the lease is not valid
  // any more then. May be empty.
  absl::AnyInvocable<void() &&> on_revoked;
};

// What the version store knows of a lease; shared by both.
struct LeaseRecord {
  std::shared_ptr<const ModelVersion> version;  // nullptr once revoked
  LeaseUse use = LeaseUse::kStep;
  std::string holder;
  absl::Time since;
  absl::AnyInvocable<void() &&> on_revoked;
  absl::AnyInvocable<void() &&> unlist;  // takes it off the store's list
};

// Movable. Ends when it is destroyed or assigned over; all on the executor.
class WeightLease {
 public:
  WeightLease() = default;
  explicit WeightLease(std::shared_ptr<LeaseRecord> record) : record_(std::move(record)) {}
  WeightLease(WeightLease&&) = default;
  WeightLease& operator=(WeightLease&& other) noexcept;
  ~WeightLease() { End(); }

  // False if it is empty or was revoked.
  bool valid() const { return version() != nullptr; }
  // The pinned version; nullptr if not valid. A copy of the pointer keeps the
  // bytes for as long as it lives, also past a revocation.
  std::shared_ptr<const ModelVersion> version() const {
    return record_ == nullptr ? nullptr : record_->version;
  }

 private:
  void End();

  std::shared_ptr<LeaseRecord> record_;
};

// Where sessions get leases; the model catalog is one.
class LeaseSource {
 public:
  virtual ~LeaseSource() = default;

  // NOT_FOUND if there is no such model, or `version` is none of its live ones;
  // FAILED_PRECONDITION / MODEL_BUSY while it is being created; DATA_LOSS if it
  // is damaged.
  virtual absl::StatusOr<WeightLease> Lease(LeaseRequest request) = 0;
};

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_WEIGHTS_WEIGHT_LEASE_H_
