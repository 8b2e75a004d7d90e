#include "core/quant/quantize_spec.h"

#include "absl/strings/str_cat.h"
#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "core/numeric/float8_e4m3.h"
#include "core/numeric/float8_e5m2.h"
#include "core/quant/hadamard.h"

namespace planewise {
namespace {

DType ElementOf(const Recipe& recipe, OperandRole role) {
  if (recipe.format == Format::kNvfp4) return DType::kF4E2M1;
  const bool wide = role == OperandRole::kGradient && recipe.fp8_format == Fp8Format::kHybrid;
  return wide ? DType::kF8E5M2 : DType::kF8E4M3;
}

absl::Status CheckElement(const QuantizeSpec& spec) {
  const bool four_bits = spec.format == Format::kNvfp4;
  const bool fits = four_bits ? spec.element == DType::kF4E2M1
                              : spec.element == DType::kF8E4M3 || spec.element == DType::kF8E5M2;
  if (fits) return absl::OkStatus();
  return Error(Reason::kDtypeUnsupported,
               absl::StrCat(Name(spec.format), " elements of ", Name(spec.element), "; required ",
                            four_bits ? "F4" : "F8_E4M3 or F8_E5M2"));
}

}  // namespace

QuantizeSpec QuantizeSpecFor(const Recipe& recipe, OperandRole role, const StochasticKey& key) {
  QuantizeSpec spec;
  spec.format = recipe.format;
  spec.element = ElementOf(recipe, role);
  spec.power_of_two_scales = recipe.power_of_two_scales;
  spec.amax_epsilon = recipe.amax_epsilon;
  if (role == OperandRole::kWeight) {
    if (!IsPerTensor(recipe.format)) spec.geometry = recipe.weight_geometry;
    spec.amax_history_length = recipe.amax_history_length;
    return spec;
  }
  spec.hadamard_column = recipe.hadamard;
  if (role == OperandRole::kGradient && recipe.stochastic_rounding) spec.stochastic = key;
  return spec;
}

DelayedScalingRule DelayedScalingRuleFor(const Recipe& recipe, OperandRole role) {
  DelayedScalingRule rule;
  rule.element_max =
      ElementOf(recipe, role) == DType::kF8E5M2 ? Float8E5M2::kMax : Float8E4M3::kMax;
  rule.margin = recipe.margin;
  rule.most_recent = recipe.amax_algorithm == AmaxAlgorithm::kMostRecent;
  return rule;
}

absl::Status CheckSpec(const QuantizeSpec& spec) {
  if (spec.format == Format::kNone) {
    return Error(Reason::kInvalidRequest, "a matrix of format none is not quantized");
  }
  PW_RETURN_IF_ERROR(CheckElement(spec));
  const bool transforms = spec.hadamard_column || spec.stochastic.has_value();
  if (transforms && (spec.format != Format::kNvfp4 || spec.geometry != BlockGeometry::k1D)) {
    return Error(Reason::kInvalidRequest,
                 absl::StrCat(spec.hadamard_column ? "a Hadamard transform" : "stochastic rounding",
                              " of ", Name(spec.format), " with ", Name(spec.geometry),
                              " blocks; only nvfp4 with 1-D blocks has it"));
  }
  return absl::OkStatus();
}

absl::StatusOr<PlaneLayout> LayoutFor(const QuantizeSpec& spec, PlaneKind kind, MatrixShape shape) {
  if (kind == PlaneKind::kHighPrecision) {
    return Error(Reason::kInvalidRequest, "a quantized plane is a row or a column plane");
  }
  PW_RETURN_IF_ERROR(CheckSpec(spec));
  if (spec.hadamard_column && kind == PlaneKind::kColumn) {
    shape.out = RoundUp(shape.out, kHadamardBlock);
  }
  PlaneOptions options;
  options.amax_history_length = spec.amax_history_length;
  const bool has_state = spec.amax_history_length > 0;
  const Format format =
      spec.format == Format::kFp8Delayed && !has_state ? Format::kFp8Current : spec.format;
  PW_ASSIGN_OR_RETURN(PlaneLayout layout,
                      PlaneLayoutFor(format, spec.geometry, kind, shape, DType::kBF16, options));
  layout.payload_dtype = spec.element;
  return layout;
}

bool NeedsAmax(const QuantizeSpec& spec) {
  return spec.format == Format::kFp8Current || spec.format == Format::kNvfp4;
}

bool HasDelayedState(const QuantizeSpec& spec) {
  return spec.format == Format::kFp8Delayed && spec.amax_history_length > 0;
}

}  // namespace planewise
