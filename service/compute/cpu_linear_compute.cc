#include "service/compute/cpu_linear_compute.h"

#include <utility>

namespace planewise {
namespace {

class CpuLinearCompute final : public LinearCompute {
 public:
  explicit CpuLinearCompute(const ComputeContext& context) : context_(context) {}

  absl::StatusOr<LinearForwardPlan> PlanForward(absl::string_view name,
                                                const PrimaryWeight& weight,
                                                const LinearMode& mode, int64_t tokens,
                                                DType activation) const override {
    return PlanLinearForward(name, weight, mode, tokens, activation);
  }

  absl::StatusOr<LinearForwardOutcome> RunForward(const LinearForwardPlan& plan,
                                                  const HostedLayer& layer, HostBuffer x,
                                                  MutableMatrixView y) const override {
    return RunLinearForward(context_, plan, layer, std::move(x), y);
  }

  absl::StatusOr<std::shared_ptr<const SavedOperand>> SaveOperand(
      const LinearForwardPlan& plan, const HostedLayer& layer, HostBuffer x) const override {
    return planewise::SaveOperand(context_, plan, layer, std::move(x));
  }

  absl::StatusOr<LinearBackwardPlan> PlanBackward(absl::string_view name,
                                                  const SavedOperand& operand,
                                                  LinearGradients wanted) const override {
    return PlanLinearBackward(name, operand, wanted);
  }

  absl::StatusOr<LinearBackwardPlan> RunBackward(const LinearBackwardPlan& plan,
                                                 const SavedOperand& operand, MatrixView dy,
                                                 MutableMatrixView dx, MutableMatrixView dw,
                                                 MutableMatrixView db) const override {
    return RunLinearBackward(context_, plan, operand, dy, dx, dw, db);
  }

 private:
  const ComputeContext context_;
};

}  // namespace

std::unique_ptr<LinearCompute> MakeCpuLinearCompute(const ComputeContext& context) {
  return std::make_unique<CpuLinearCompute>(context);
}

}  // namespace planewise
