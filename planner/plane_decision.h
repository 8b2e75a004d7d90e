#ifndef PLANEWISE_PLANNER_PLANE_DECISION_H_
#define PLANEWISE_PLANNER_PLANE_DECISION_H_
// Which planes of a weight to keep:
//   row    = always
//   column = false                                        policy ROW_ONLY
//          = true                                         policy BOTH
//          = backward_enabled and override == none        policy AUTO
// AUTO also keeps what a declared future mode needs. The same rule for every
// layer kind. The answer is a value that is stored with the weight.
//
// Not here: the value (core/tensor/plane_set.h); changing it for a weight that
// exists (mode_switch.h).

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/numeric/dtype.h"
#include "core/recipe/recipe.h"
#include "core/tensor/plane_layout.h"
#include "core/tensor/plane_set.h"

namespace planewise {

struct PlaneQuestion {
  Recipe recipe;
  bool backward_enabled = true;  // may any backward run: dX or dW
  PlanePolicy policy = PlanePolicy::kAuto;
  std::vector<BackwardOverride> future_modes;
  MatrixShape shape;
  DType nominal = DType::kBF16;
};

// For a high-precision recipe row is true and column false: its one plane, the
// matrix itself, serves every GEMM, whatever the policy. INVALID_ARGUMENT as
// WeightPlaneLayout.
absl::StatusOr<PlaneDecision> DecidePlanes(const PlaneQuestion& question);

// Does a backward under this recipe read the column plane of the weight?
bool BackwardReadsColumn(const Recipe& recipe);

// The value for planes that are what they are for another reason than the rule
// above, for example because a switch kept them. `why` is recorded.
absl::StatusOr<PlaneDecision> RecordPlanes(const PlaneQuestion& question, bool column,
                                           std::string why);

// The planes that a decision keeps, row before column. INVALID_ARGUMENT as
// PlaneLayoutFor.
absl::StatusOr<std::vector<PlaneLayout>> LayoutsOf(const PlaneDecision& decision,
                                                   const Recipe& recipe, MatrixShape shape,
                                                   DType nominal);

int64_t TotalBytes(absl::Span<const PlaneLayout> planes);

}  // namespace planewise

#endif  // PLANEWISE_PLANNER_PLANE_DECISION_H_
