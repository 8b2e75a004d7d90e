#ifndef PLANEWISE_SERVICE_SESSION_OPERAND_TABLE_H_
#define PLANEWISE_SERVICE_SESSION_OPERAND_TABLE_H_
// The saved operands of a session, by handle, under the session's budget.
//
//   a handle is   after
//   live          a forward that saved
//   gone          the first backward that succeeded with it, a release, the end
//                 of its version's lease
//
// Handles are numbered from 1 and never used twice, so what is neither live nor
// yet to come is gone, and nothing need be kept of it.

#include <cstdint>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/strong_int.h"
#include "core/layer/linear.h"
#include "service/session/session_limits.h"
#include "service/weights/weight_lease.h"

namespace planewise {

struct Operand {
  std::shared_ptr<const SavedOperand> saved;
  std::string layer;
  WeightVersion version;
  // Keeps the version for the backward.
  WeightLease lease;
};

// One thread.
class OperandTable {
 public:
  // `limits` outlives it.
  explicit OperandTable(const SessionLimits& limits) : limits_(limits) {}

  // RESOURCE_EXHAUSTED / QUOTA_EXCEEDED if another operand of `saved_bytes`
  // would exceed the session's budget or number of handles.
  absl::Status CheckRoom(int64_t saved_bytes) const;

  // Keeps an operand of the version that `pin` holds.
  HandleId Add(std::shared_ptr<const SavedOperand> saved, std::string layer,
               const WeightLease& pin);

  // FAILED_PRECONDITION / UNKNOWN_HANDLE for one that never existed, ABORTED /
  // OPERAND_EVICTED for one that is gone. The pointer is good until the next
  // call.
  absl::StatusOr<const Operand*> Find(HandleId handle) const;

  // FAILED_PRECONDITION / UNKNOWN_HANDLE.
  absl::Status CheckExisted(HandleId handle) const;

  // The operand is gone then; returns its bytes, 0 if it was gone before.
  int64_t Remove(HandleId handle);

  int64_t saved_bytes() const { return saved_bytes_; }
  int size() const { return static_cast<int>(operands_.size()); }

 private:
  const SessionLimits& limits_;
  absl::flat_hash_map<HandleId, Operand> operands_;
  HandleId next_handle_{1};
  int64_t saved_bytes_ = 0;
};

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_SESSION_OPERAND_TABLE_H_
