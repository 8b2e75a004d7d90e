#ifndef PLANEWISE_PROTO_RECIPE_RECIPE_CODEC_H_
#define PLANEWISE_PROTO_RECIPE_RECIPE_CODEC_H_
// Recipes, overrides, plane policies and decisions between the API and core, so that
// they mean the same to the daemon and to those who plan without it.
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
// a format of no known name, and with INVALID_REQUEST for other fields that are
// malformed, or set although the format has none of them; they are named by path
// below `field`.
absl::StatusOr<Recipe> FromProto(const v1::Recipe& recipe, absl::string_view field);

// Unspecified means NONE and AUTO.
absl::StatusOr<BackwardOverride> FromProto(v1::BackwardOverride value, absl::string_view field);
absl::StatusOr<PlanePolicy> FromProto(v1::PlanePolicy value, absl::string_view field);

// With every field that the format has, and no other.
v1::Recipe ToProto(const Recipe& recipe);
v1::BackwardOverride ToProto(BackwardOverride value);
v1::PlanePolicy ToProto(PlanePolicy value);
v1::PlaneDecision ToProto(const PlaneDecision& decision);

}  // namespace planewise

#endif  // PLANEWISE_PROTO_RECIPE_RECIPE_CODEC_H_
