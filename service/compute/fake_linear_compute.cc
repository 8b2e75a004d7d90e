#include "service/compute/fake_linear_compute.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"

namespace planewise {
namespace {

const float* Floats(MatrixView matrix) { return static_cast<const float*>(matrix.data); }
float* Floats(MutableMatrixView matrix) { return static_cast<float*>(matrix.data); }

const float* Floats(const PrimaryWeight& weight) {
  return reinterpret_cast<const float*>(weight.high_precision->payload.data());
}

}  // namespace

absl::StatusOr<LinearForwardPlan> FakeLinearCompute::PlanForward(absl::string_view name,
                                                                 const PrimaryWeight& weight,
                                                                 const LinearMode& mode,
                                                                 int64_t tokens,
                                                                 DType activation) const {
  if (activation != DType::kF32) {
    return Error(Reason::kDtypeUnsupported, absl::StrCat("layer \"", name, "\": ",
                                                         Name(activation), ", required F32"));
  }
  if (mode.save_for_backward && !mode.backward_enabled) {
    return Error(Reason::kBackwardDisabled, absl::StrCat("layer \"", name, "\""));
  }
  if (mode.save_for_backward && weight.format != Format::kNone && weight.column == nullptr &&
      mode.recipe.backward_override == BackwardOverride::kNone) {
    return Error(Reason::kColumnwiseMissing, absl::StrCat("layer \"", name, "\""));
  }
  LinearForwardPlan plan;
  plan.mode = mode;
  plan.tokens = tokens;
  plan.activation = activation;
  plan.path = GemmPath::kHighPrecision;
  if (mode.save_for_backward && mode.weight_gradient) {
    plan.saved_bytes = tokens * weight.shape.in * static_cast<int64_t>(sizeof(float));
  }
  return plan;
}

absl::StatusOr<LinearForwardOutcome> FakeLinearCompute::RunForward(const LinearForwardPlan& plan,
                                                                   const HostedLayer& layer,
                                                                   HostBuffer x,
                                                                   MutableMatrixView y) const {
  ++forwards_run_;
  const MatrixShape shape = layer.weight->shape;
  const float* w = Floats(*layer.weight);
  const auto* input = reinterpret_cast<const float*>(x.data());
  for (int64_t t = 0; t < plan.tokens; ++t) {
    for (int64_t o = 0; o < shape.out; ++o) {
      float sum = layer.bias == nullptr ? 0.0f : Floats(*layer.bias)[o];
      for (int64_t i = 0; i < shape.in; ++i) sum += input[t * shape.in + i] * w[o * shape.in + i];
      Floats(y)[t * shape.out + o] = sum;
    }
  }
  LinearForwardOutcome outcome;
  outcome.path = plan.path;
  if (plan.mode.save_for_backward) outcome.saved = *SaveOperand(plan, layer, std::move(x));
  return outcome;
}

absl::StatusOr<std::shared_ptr<const SavedOperand>> FakeLinearCompute::SaveOperand(
    const LinearForwardPlan& plan, const HostedLayer& layer, HostBuffer x) const {
  auto saved = std::make_shared<SavedOperand>();
  saved->mode = plan.mode;
  saved->weight = layer.weight;
  saved->has_bias = layer.bias != nullptr;
  saved->tokens = plan.tokens;
  saved->activation = plan.activation;
  if (plan.mode.weight_gradient) {
    x.ChargeTo(MemoryUse::kSavedOperands);
    saved->original = std::move(x);
  }
  return saved;
}

absl::StatusOr<LinearBackwardPlan> FakeLinearCompute::PlanBackward(absl::string_view name,
                                                                   const SavedOperand& operand,
                                                                   LinearGradients wanted) const {
  if (wanted.weight && !operand.original.has_value()) {
    return Error(Reason::kNotTrainable, absl::StrCat("layer \"", name, "\""));
  }
  LinearBackwardPlan plan;
  plan.wanted = wanted;
  plan.dgrad_path = plan.wgrad_path = GemmPath::kHighPrecision;
  return plan;
}

absl::StatusOr<LinearBackwardPlan> FakeLinearCompute::RunBackward(
    const LinearBackwardPlan& plan, const SavedOperand& operand, MatrixView dy,
    MutableMatrixView dx, MutableMatrixView dw, MutableMatrixView db) const {
  ++backwards_run_;
  const auto [out, in] = operand.weight->shape;
  const int64_t tokens = operand.tokens;
  const float* w = Floats(*operand.weight);
  for (int64_t t = 0; plan.wanted.input && t < tokens; ++t) {
    for (int64_t i = 0; i < in; ++i) {
      float sum = 0;
      for (int64_t o = 0; o < out; ++o) sum += Floats(dy)[t * out + o] * w[o * in + i];
      Floats(dx)[t * in + i] = sum;
    }
  }
  for (int64_t o = 0; plan.wanted.weight && o < out; ++o) {
    const auto* x = reinterpret_cast<const float*>(operand.original->data());
    for (int64_t i = 0; i < in; ++i) {
      float sum = 0;
      for (int64_t t = 0; t < tokens; ++t) sum += Floats(dy)[t * out + o] * x[t * in + i];
      Floats(dw)[o * in + i] = sum;
    }
  }
  for (int64_t o = 0; plan.wanted.bias && o < out; ++o) {
    float sum = 0;
    for (int64_t t = 0; t < tokens; ++t) sum += Floats(dy)[t * out + o];
    Floats(db)[o] = sum;
  }
  return plan;
}

}  // namespace planewise
