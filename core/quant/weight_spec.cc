#include "core/quant/weight_spec.h"

#include "core/base/status_macros.h"
#include "core/quant/delayed_scaling.h"

namespace planewise {

absl::StatusOr<QuantizeSpec> NewWeightSpec(const Quantizer& quantizer, const Recipe& recipe,
                                           MatrixView weight) {
  QuantizeSpec spec = QuantizeSpecFor(recipe, OperandRole::kWeight);
  if (recipe.format != Format::kFp8Delayed) return spec;
  TensorAmax amax;
  PW_RETURN_IF_ERROR(quantizer.MeasureAmax(weight, spec, {true, false}, AllRows(weight), &amax));
  float state[DelayedStateWords(1)] = {};
  InitializeDelayedState(absl::MakeSpan(state));
  RecordAmax(absl::MakeSpan(state), amax.row);
  UpdateDelayedState(DelayedScalingRuleFor(recipe, OperandRole::kWeight), absl::MakeSpan(state));
  spec.delayed_scale = state[0];
  return spec;
}

}  // namespace planewise
