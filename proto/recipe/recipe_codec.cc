#include "proto/recipe/recipe_codec.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "proto/status/field_error.h"

namespace planewise {
namespace {

bool IsSet(const v1::Recipe& proto, RecipeField field) {
  switch (field) {
    case RecipeField::kFp8Format:
      return !proto.fp8_format().empty();
    case RecipeField::kWeightGeometry:
      return proto.weight_block_dim() != 0;
    case RecipeField::kPowerOfTwoScales:
      return proto.has_power_of_two_scales();
    case RecipeField::kAmaxEpsilon:
      return proto.has_amax_epsilon();
    case RecipeField::kMargin:
      return proto.has_margin();
    case RecipeField::kAmaxHistoryLength:
      return proto.has_amax_history_length();
    case RecipeField::kAmaxAlgorithm:
      return !proto.amax_algorithm().empty();
    case RecipeField::kHadamard:
      return proto.has_hadamard();
    case RecipeField::kStochasticRounding:
      return proto.has_stochastic_rounding();
  }
  return false;
}

// The message's name of a field.
absl::string_view ProtoName(RecipeField field) {
  return field == RecipeField::kWeightGeometry ? "weight_block_dim" : Name(field);
}

absl::Status CheckFieldsExist(const v1::Recipe& proto, Format format, absl::string_view parent) {
  for (const RecipeField field : kRecipeFields) {
    if (!IsSet(proto, field) || HasField(format, field)) continue;
    const std::string path = absl::StrCat(parent, ".", ProtoName(field));
    const std::string problem =
        absl::StrCat("recipe ", Name(format), " has no such field; leave it out");
    return Error(Reason::kInvalidRequest, absl::StrCat("field ", path, ": ", problem))
        .With("field", path)
        .WithViolation({Reason::kInvalidRequest, path, problem});
  }
  return absl::OkStatus();
}

// Fields that not every value is a value of.
absl::Status SetNames(const v1::Recipe& proto, absl::string_view parent, Recipe& recipe) {
  const auto unknown = [parent](RecipeField field, const auto& value, absl::string_view valid) {
    return InvalidField(absl::StrCat(parent, ".", ProtoName(field)),
                        absl::StrCat("\"", value, "\" is not known"),
                        absl::StrCat(valid, ", or leave it out for the format's default"));
  };
  if (IsSet(proto, RecipeField::kFp8Format)) {
    const absl::StatusOr<Fp8Format> parsed = ParseFp8Format(proto.fp8_format());
    if (!parsed.ok()) {
      return unknown(RecipeField::kFp8Format, proto.fp8_format(), "\"e4m3\" or \"hybrid\"");
    }
    recipe.fp8_format = *parsed;
  }
  if (IsSet(proto, RecipeField::kWeightGeometry)) {
    if (proto.weight_block_dim() != 1 && proto.weight_block_dim() != 2) {
      return unknown(RecipeField::kWeightGeometry, proto.weight_block_dim(), "1 or 2");
    }
    recipe.weight_geometry =
        proto.weight_block_dim() == 1 ? BlockGeometry::k1D : BlockGeometry::k2D;
  }
  if (IsSet(proto, RecipeField::kAmaxAlgorithm)) {
    const absl::StatusOr<AmaxAlgorithm> parsed = ParseAmaxAlgorithm(proto.amax_algorithm());
    if (!parsed.ok()) {
      return unknown(RecipeField::kAmaxAlgorithm, proto.amax_algorithm(),
                     "\"max\" or \"most_recent\"");
    }
    recipe.amax_algorithm = *parsed;
  }
  return absl::OkStatus();
}

void SetValues(const v1::Recipe& proto, Recipe& recipe) {
  if (proto.has_power_of_two_scales()) recipe.power_of_two_scales = proto.power_of_two_scales();
  if (proto.has_amax_epsilon()) recipe.amax_epsilon = proto.amax_epsilon();
  if (proto.has_margin()) recipe.margin = proto.margin();
  if (proto.has_amax_history_length()) recipe.amax_history_length = proto.amax_history_length();
  if (proto.has_hadamard()) recipe.hadamard = proto.hadamard();
  if (proto.has_stochastic_rounding()) recipe.stochastic_rounding = proto.stochastic_rounding();
}

void SetField(RecipeField field, const Recipe& recipe, v1::Recipe& proto) {
  switch (field) {
    case RecipeField::kFp8Format:
      return proto.set_fp8_format(std::string(Name(recipe.fp8_format)));
    case RecipeField::kWeightGeometry:
      return proto.set_weight_block_dim(recipe.weight_geometry == BlockGeometry::k1D ? 1 : 2);
    case RecipeField::kPowerOfTwoScales:
      return proto.set_power_of_two_scales(recipe.power_of_two_scales);
    case RecipeField::kAmaxEpsilon:
      return proto.set_amax_epsilon(recipe.amax_epsilon);
    case RecipeField::kMargin:
      return proto.set_margin(recipe.margin);
    case RecipeField::kAmaxHistoryLength:
      return proto.set_amax_history_length(recipe.amax_history_length);
    case RecipeField::kAmaxAlgorithm:
      return proto.set_amax_algorithm(std::string(Name(recipe.amax_algorithm)));
    case RecipeField::kHadamard:
      return proto.set_hadamard(recipe.hadamard);
    case RecipeField::kStochasticRounding:
      return proto.set_stochastic_rounding(recipe.stochastic_rounding);
  }
}

}  // namespace

absl::StatusOr<Recipe> FromProto(const v1::Recipe& proto, absl::string_view field) {
  if (proto.format().empty()) {
    return Error(Reason::kUnknownRecipe,
                 absl::StrCat("field ", field,
                              ".format is empty; name a recipe, for example "
                              "\"mxfp8\", or \"none\" for high precision"))
        .With("field", absl::StrCat(field, ".format"));
  }
  PW_ASSIGN_OR_RETURN(const Format format, ParseFormat(proto.format()));
  Recipe recipe = DefaultRecipe(format);
  PW_ASSIGN_OR_RETURN(
      recipe.backward_override,
      FromProto(proto.backward_override(), absl::StrCat(field, ".backward_override")));
  PW_RETURN_IF_ERROR(CheckFieldsExist(proto, format, field));
  PW_RETURN_IF_ERROR(SetNames(proto, field, recipe));
  SetValues(proto, recipe);
  return recipe;
}

absl::StatusOr<BackwardOverride> FromProto(v1::BackwardOverride value, absl::string_view field) {
  switch (value) {
    case v1::BACKWARD_OVERRIDE_UNSPECIFIED:
    case v1::BACKWARD_OVERRIDE_NONE:
      return BackwardOverride::kNone;
    case v1::BACKWARD_OVERRIDE_HIGH_PRECISION:
      return BackwardOverride::kHighPrecision;
    case v1::BACKWARD_OVERRIDE_DEQUANTIZED:
      return BackwardOverride::kDequantized;
    default:
      return InvalidField(field, absl::StrCat("backward_override ", value, " is not known"),
                          "NONE, HIGH_PRECISION or DEQUANTIZED");
  }
}

absl::StatusOr<PlanePolicy> FromProto(v1::PlanePolicy value, absl::string_view field) {
  switch (value) {
    case v1::PLANE_POLICY_UNSPECIFIED:
    case v1::PLANE_POLICY_AUTO:
      return PlanePolicy::kAuto;
    case v1::PLANE_POLICY_BOTH:
      return PlanePolicy::kBoth;
    case v1::PLANE_POLICY_ROW_ONLY:
      return PlanePolicy::kRowOnly;
    default:
      return InvalidField(field, absl::StrCat("plane policy ", value, " is not known"),
                          "AUTO, BOTH or ROW_ONLY");
  }
}

v1::Recipe ToProto(const Recipe& recipe) {
  v1::Recipe proto;
  proto.set_format(std::string(Name(recipe.format)));
  proto.set_backward_override(ToProto(recipe.backward_override));
  for (const RecipeField field : kRecipeFields) {
    if (HasField(recipe.format, field)) SetField(field, recipe, proto);
  }
  proto.set_fingerprint(absl::StrFormat("%016x", recipe.Fingerprint()));
  return proto;
}

v1::BackwardOverride ToProto(BackwardOverride value) {
  switch (value) {
    case BackwardOverride::kNone:
      return v1::BACKWARD_OVERRIDE_NONE;
    case BackwardOverride::kHighPrecision:
      return v1::BACKWARD_OVERRIDE_HIGH_PRECISION;
    case BackwardOverride::kDequantized:
      return v1::BACKWARD_OVERRIDE_DEQUANTIZED;
  }
  return v1::BACKWARD_OVERRIDE_UNSPECIFIED;
}

v1::PlanePolicy ToProto(PlanePolicy value) {
  switch (value) {
    case PlanePolicy::kAuto:
      return v1::PLANE_POLICY_AUTO;
    case PlanePolicy::kBoth:
      return v1::PLANE_POLICY_BOTH;
    case PlanePolicy::kRowOnly:
      return v1::PLANE_POLICY_ROW_ONLY;
  }
  return v1::PLANE_POLICY_UNSPECIFIED;
}

v1::PlaneDecision ToProto(const PlaneDecision& decision) {
  v1::PlaneDecision proto;
  proto.set_policy(ToProto(decision.policy));
  proto.set_row(decision.row);
  proto.set_column(decision.column);
  proto.set_why(decision.why);
  proto.set_saved_bytes(decision.saved_bytes);
  for (const std::string& forbidden : decision.forbids) proto.add_forbids(forbidden);
  return proto;
}

}  // namespace planewise
