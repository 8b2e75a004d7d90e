#ifndef PLANEWISE_PLANNER_WHAT_IF_H_
#define PLANEWISE_PLANNER_WHAT_IF_H_
// The same model under other choices: the matrix recipe x override x policy,
// and, where a plan does not fit, the shortfall and the nearest choices that do.
//
// Not here: one plan's bytes (memory_model.h); showing them (memory_report.h).

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "planner/memory_model.h"

namespace planewise {

struct WhatIfCell {
  Recipe recipe;
  PlanePolicy policy = PlanePolicy::kAuto;
  absl::Status legal;  // why this combination cannot be hosted; the rest is then 0
  int64_t persistent_bytes = 0;
  int64_t saved_operand_bytes = 0;
  int64_t load_peak_bytes = 0;
  int64_t required_bytes = 0;
  // Does this build multiply planes of the recipe, or only host them?
  bool computes = false;
  // Can this very recipe run its backward on the planes that are kept?
  bool backward_runs = false;
  std::vector<std::string> forbids;  // as PlaneDecision
};

// Every hostable format x override x policy, with everything else as in `options`.
std::vector<WhatIfCell> WhatIf(const TensorInventory& inventory, const PlanOptions& options);

// A change to a plan after which it fits.
struct FittingChoice {
  std::string change;  // for example "plane_policy=ROW_ONLY"
  int64_t required_bytes = 0;
  std::vector<std::string> forbids;
};

struct FitReport {
  bool fits = false;
  int64_t required_bytes = 0;
  int64_t limit_bytes = 0;
  int64_t short_bytes = 0;  // 0 if it fits
  // Nearest first: other recipes, overrides and policies, whose backward runs
  // if one is wanted; then fewer sessions, fewer tokens.
  std::vector<FittingChoice> choices;
};

// Does the plan fit into `limit_bytes`? If not, what would. INVALID_ARGUMENT as
// PlanModel.
absl::StatusOr<FitReport> CheckFit(const TensorInventory& inventory, const PlanOptions& options,
                                   int64_t limit_bytes);

// OK if it fits; else RESOURCE_EXHAUSTED / MEMORY_SHORTFALL with required,
// limit, shortfall and choices. `what` names the object, for example
// `model "a"`.
absl::Status FitStatus(const FitReport& report, absl::string_view what);

}  // namespace planewise

#endif  // PLANEWISE_PLANNER_WHAT_IF_H_
