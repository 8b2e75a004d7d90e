#ifndef PLANEWISE_SERVICE_COMPUTE_FAKE_LINEAR_COMPUTE_H_
#define PLANEWISE_SERVICE_COMPUTE_FAKE_LINEAR_COMPUTE_H_
// A LinearCompute for tests: plain loops over F32 weights and activations, the
// guards of the real one, and a count of what it was asked to run. With small
// integers every sum is exact, so results compare byte by byte.

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "service/compute/linear_compute.h"

namespace planewise {

// One thread.
class FakeLinearCompute final : public LinearCompute {
 public:
  absl::StatusOr<LinearForwardPlan> PlanForward(absl::string_view name,
                                                const PrimaryWeight& weight,
                                                const LinearMode& mode, int64_t tokens,
                                                DType activation) const override;
  // `layer` has an F32 high-precision plane.
  absl::StatusOr<LinearForwardOutcome> RunForward(const LinearForwardPlan& plan,
                                                  const HostedLayer& layer, HostBuffer x,
                                                  MutableMatrixView y) const override;
  absl::StatusOr<std::shared_ptr<const SavedOperand>> SaveOperand(const LinearForwardPlan& plan,
                                                                  const HostedLayer& layer,
                                                                  HostBuffer x) const override;
  absl::StatusOr<LinearBackwardPlan> PlanBackward(absl::string_view name,
                                                  const SavedOperand& operand,
                                                  LinearGradients wanted) const override;
  absl::StatusOr<LinearBackwardPlan> RunBackward(const LinearBackwardPlan& plan,
                                                 const SavedOperand& operand, MatrixView dy,
                                                 MutableMatrixView dx, MutableMatrixView dw,
                                                 MutableMatrixView db) const override;

  int64_t forwards_run() const { return forwards_run_; }
  int64_t backwards_run() const { return backwards_run_; }

 private:
  mutable int64_t forwards_run_ = 0;
  mutable int64_t backwards_run_ = 0;
};

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_COMPUTE_FAKE_LINEAR_COMPUTE_H_
