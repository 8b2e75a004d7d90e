#ifndef PLANEWISE_SERVICE_RPC_RECIPE_CONVERSION_H_
#define PLANEWISE_SERVICE_RPC_RECIPE_CONVERSION_H_
// Recipes, overrides, plane policies and decisions between the API and core.
//
// Not here: whether a recipe is legal (core/recipe) or fits a weight
// (core/recipe/recipe_check.h).

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/recipe/recipe.h"
#include "core/tensor/plane_set.h"
#include "planewise/v1/recipe.pb.h"

namespace planewise {

// The recipe with defaults filled in. INVALID_ARGUMENT with UNKNOWN_RECIPE for
// a format of no known name, and with INVALID_REQUEST for other fields, named
// by path below `field`.
absl::StatusOr<Recipe> FromProto(const v1::Recipe& recipe, absl::string_view field);

// Unspecified means NONE and AUTO.
absl::StatusOr<BackwardOverride> FromProto(v1::BackwardOverride value, absl::string_view field);
absl::StatusOr<PlanePolicy> FromProto(v1::PlanePolicy value, absl::string_view field);

v1::Recipe ToProto(const Recipe& recipe);
v1::BackwardOverride ToProto(BackwardOverride value);
v1::PlanePolicy ToProto(PlanePolicy value);
v1::PlaneDecision ToProto(const PlaneDecision& decision);

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_RPC_RECIPE_CONVERSION_H_
