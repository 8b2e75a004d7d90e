#include "tests/bench/copying_compute.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "core/base/error.h"

namespace planewise {
namespace {

Error NoBackward() { return Error(Reason::kNotSupported, "this compute only copies"); }

}  // namespace

absl::StatusOr<LinearForwardPlan> CopyingCompute::PlanForward(absl::string_view,
                                                              const PrimaryWeight&,
                                                              const LinearMode& mode,
                                                              int64_t tokens,
                                                              DType activation) const {
  LinearForwardPlan plan;
  plan.mode = mode;
  plan.tokens = tokens;
  plan.activation = activation;
  return plan;
}

absl::StatusOr<LinearForwardOutcome> CopyingCompute::RunForward(const LinearForwardPlan& plan,
                                                                const HostedLayer& layer,
                                                                HostBuffer x,
                                                                MutableMatrixView y) const {
  const int64_t element_bytes = FactsOf(plan.activation).bits / 8;
  const int64_t x_bytes = layer.weight->shape.in * element_bytes;
  const int64_t y_bytes = layer.weight->shape.out * element_bytes;
  const int64_t shared_bytes = std::min(x_bytes, y_bytes);
  auto* target = static_cast<std::byte*>(y.data);
  for (int64_t row = 0; row < plan.tokens; ++row) {
    std::memcpy(target + row * y_bytes, x.data() + row * x_bytes, shared_bytes);
    std::memset(target + row * y_bytes + shared_bytes, 0, y_bytes - shared_bytes);
  }
  return LinearForwardOutcome{plan.path, nullptr};
}

absl::StatusOr<std::shared_ptr<const SavedOperand>> CopyingCompute::SaveOperand(
    const LinearForwardPlan&, const HostedLayer&, HostBuffer) const {
  return NoBackward();
}

absl::StatusOr<LinearBackwardPlan> CopyingCompute::PlanBackward(absl::string_view,
                                                                const SavedOperand&,
                                                                LinearGradients) const {
  return NoBackward();
}

absl::StatusOr<LinearBackwardPlan> CopyingCompute::RunBackward(const LinearBackwardPlan&,
                                                               const SavedOperand&, MatrixView,
                                                               MutableMatrixView,
                                                               MutableMatrixView,
                                                               MutableMatrixView) const {
  return NoBackward();
}

std::shared_ptr<const ModelVersion> MakeHollowVersion(const std::string& model,
                                                      const std::string& layer, int64_t out,
                                                      int64_t in) {
  auto weight = std::make_shared<PrimaryWeight>();
  weight->name = layer + ".weight";
  weight->shape = {out, in};
  HostedLayer hosted;
  hosted.name = layer;
  hosted.weight = std::move(weight);
  auto version = std::make_shared<ModelVersion>();
  version->model = model;
  version->version = WeightVersion(1);
  version->layers.push_back(std::move(hosted));
  return version;
}

}  // namespace planewise
