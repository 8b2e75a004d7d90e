#include "service/rpc/recipe_conversion.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "service/rpc/field_error.h"

namespace planewise {
namespace {

absl::StatusOr<Fp8Format> ParseFp8Format(absl::string_view name, absl::string_view field) {
  for (const Fp8Format value : {Fp8Format::kE4M3, Fp8Format::kHybrid}) {
    if (name == Name(value)) return value;
  }
  return InvalidField(field, absl::StrCat("\"", name, "\" is not known"),
                      "\"e4m3\" or \"hybrid\", or leave it empty for the format's default");
}

}  // namespace

absl::StatusOr<Recipe> FromProto(const v1::Recipe& proto, absl::string_view field) {
  if (proto.format().empty()) {
    return Error(Reason::kUnknownRecipe,
                 absl::StrCat("field ", field, ".format is empty; name a recipe, for example "
                              "\"mxfp8\", or \"none\" for high precision"))
        .With("field", absl::StrCat(field, ".format"));
  }
  PW_ASSIGN_OR_RETURN(const Format format, ParseFormat(proto.format()));
  Recipe recipe = DefaultRecipe(format);
  PW_ASSIGN_OR_RETURN(
      recipe.backward_override,
      FromProto(proto.backward_override(), absl::StrCat(field, ".backward_override")));
  if (!proto.fp8_format().empty()) {
    PW_ASSIGN_OR_RETURN(recipe.fp8_format,
                        ParseFp8Format(proto.fp8_format(), absl::StrCat(field, ".fp8_format")));
  }
  switch (proto.weight_block_dim()) {
    case 0:
      break;
    case 1:
      recipe.weight_geometry = BlockGeometry::k1D;
      break;
    case 2:
      recipe.weight_geometry = BlockGeometry::k2D;
      break;
    default:
      return InvalidField(absl::StrCat(field, ".weight_block_dim"),
                          absl::StrCat(proto.weight_block_dim()),
                          "1 or 2, or 0 for the format's default");
  }
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
  if (recipe.quantized()) {
    proto.set_fp8_format(std::string(Name(recipe.fp8_format)));
    proto.set_weight_block_dim(recipe.weight_geometry == BlockGeometry::k1D ? 1 : 2);
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
