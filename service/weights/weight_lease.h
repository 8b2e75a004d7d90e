#ifndef PLANEWISE_SERVICE_WEIGHTS_WEIGHT_LEASE_H_
#define PLANEWISE_SERVICE_WEIGHTS_WEIGHT_LEASE_H_
// A reader's pin on one version of a model, and where to get one.
//
// Not here: which versions are live (version_store.h), when a lease is taken
// back (retention_policy.h).

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
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

// Runs on the executor when the lease is taken back; the lease is not valid any
// more then. May be empty.
using OnRevoked = absl::AnyInvocable<void() &&>;

struct LeaseRequest {
  std::string model;
  WeightVersion version;  // 0: the newest
  LeaseUse use = LeaseUse::kStep;
  std::string holder;  // for people, for example "session 7, step 3"
  OnRevoked on_revoked;
};

class LeaseList;

// One lease, shared by its holder and, while it is active, the list.
struct LeaseRecord : std::enable_shared_from_this<LeaseRecord> {
  std::shared_ptr<const ModelVersion> version;  // nullptr once ended or revoked
  LeaseUse use = LeaseUse::kStep;
  std::string layer;  // of an operand
  std::string holder;
  absl::Time since;
  OnRevoked on_revoked;
  std::shared_ptr<LeaseList> list;
  std::list<LeaseRecord*>::iterator place;  // in the list, while `version` is set
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

  // A lease of the same version for an operand of `layer`, also if the model was
  // deleted since. This one is valid.
  WeightLease ForOperand(std::string layer, bool reads_column, OnRevoked on_revoked) const;

 private:
  void End();

  std::shared_ptr<LeaseRecord> record_;
};

// The active leases of one model. Shared by them, so that they may outlive the
// model. One thread.
class LeaseList : public std::enable_shared_from_this<LeaseList> {
 public:
  // `clock` outlives it.
  explicit LeaseList(const Clock& clock) : clock_(clock) {}

  // `record` is complete but for the list's own fields.
  WeightLease Add(LeaseRecord record);
  void Remove(LeaseRecord& record);
  // Takes back every lease of `version` and tells its holders.
  void Revoke(WeightVersion version);

  // Oldest first.
  const std::list<LeaseRecord*>& active() const { return active_; }

 private:
  const Clock& clock_;
  std::list<LeaseRecord*> active_;
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
