#ifndef PLANEWISE_SERVICE_SESSION_STEP_TABLE_H_
#define PLANEWISE_SERVICE_SESSION_STEP_TABLE_H_
// Which version of which model each open step of a session is pinned to.
//
// Not here: saved operands, which have leases of their own (operand_table.h).

#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/strong_int.h"
#include "service/session/session_limits.h"
#include "service/weights/weight_lease.h"

namespace planewise {

// One thread.
class StepTable {
 public:
  // `limits` outlives it.
  explicit StepTable(const SessionLimits& limits) : limits_(limits) {}

  // The step's pin of `model`; nullptr if it has none yet. ABORTED /
  // LEASE_REVOKED if it was taken back: the step must begin again, after EndStep.
  absl::StatusOr<const WeightLease*> Find(StepId step, absl::string_view model) const;

  // RESOURCE_EXHAUSTED / QUOTA_EXCEEDED if one more step may not be opened.
  absl::Status CheckRoom(StepId step) const;

  void Pin(StepId step, absl::string_view model, WeightLease lease);

  // Ends the step's pins; nothing if it has none.
  void End(StepId step) { pins_.erase(step); }

  int size() const { return static_cast<int>(pins_.size()); }

 private:
  const SessionLimits& limits_;
  std::map<StepId, std::map<std::string, WeightLease, std::less<>>> pins_;
};

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_SESSION_STEP_TABLE_H_
