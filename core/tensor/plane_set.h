#ifndef PLANEWISE_CORE_TENSOR_PLANE_SET_H_
#define PLANEWISE_CORE_TENSOR_PLANE_SET_H_
// Which planes of a weight are kept, as a recorded value: the policy asked for
// and what it came to.
//
// Not here: inferring it from a recipe (planner/plane_decision.h).

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace planewise {

// kAuto: inferred from recipe and backward_enabled.
enum class PlanePolicy : uint8_t { kAuto, kBoth, kRowOnly };

absl::string_view Name(PlanePolicy policy);  // AUTO, BOTH, ROW_ONLY
// Any case. INVALID_ARGUMENT, listing the valid spellings.
absl::StatusOr<PlanePolicy> ParsePlanePolicy(absl::string_view name);

// Stored with the weight; only an explicit switch changes it.
struct PlaneDecision {
  PlanePolicy policy = PlanePolicy::kAuto;
  bool row = true;
  bool column = false;
  std::string why;
  int64_t saved_bytes = 0;  // against keeping both planes
  // What it rules out, for people, for example
  // "backward_override=none: needs master weights".
  std::vector<std::string> forbids;

  bool operator==(const PlaneDecision&) const = default;
};

}  // namespace planewise

#endif  // PLANEWISE_CORE_TENSOR_PLANE_SET_H_
