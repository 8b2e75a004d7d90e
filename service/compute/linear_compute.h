#ifndef PLANEWISE_SERVICE_COMPUTE_LINEAR_COMPUTE_H_
#define PLANEWISE_SERVICE_COMPUTE_LINEAR_COMPUTE_H_
// A backend's forward and backward of a linear layer, as an interface.
//
// Not here: the CPU backend (cpu_linear_compute.h), the double of tests
// (fake_linear_compute.h); lanes, sessions, results (linear_executor.h).

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/layer/linear.h"

namespace planewise {

// Thread-safe: planning runs on the executor, running on the compute lane. Each
// function is as its namesake in core/layer/linear.h says.
class LinearCompute {
 public:
  virtual ~LinearCompute() = default;

  virtual absl::StatusOr<LinearForwardPlan> PlanForward(absl::string_view name,
                                                        const PrimaryWeight& weight,
                                                        const LinearMode& mode, int64_t tokens,
                                                        DType activation) const = 0;
  virtual absl::StatusOr<LinearForwardOutcome> RunForward(const LinearForwardPlan& plan,
                                                          const HostedLayer& layer, HostBuffer x,
                                                          MutableMatrixView y) const = 0;
  virtual absl::StatusOr<std::shared_ptr<const SavedOperand>> SaveOperand(
      const LinearForwardPlan& plan, const HostedLayer& layer, HostBuffer x) const = 0;
  virtual absl::StatusOr<LinearBackwardPlan> PlanBackward(absl::string_view name,
                                                          const SavedOperand& operand,
                                                          LinearGradients wanted) const = 0;
  virtual absl::StatusOr<LinearBackwardPlan> RunBackward(const LinearBackwardPlan& plan,
                                                         const SavedOperand& operand,
                                                         MatrixView dy, MutableMatrixView dx,
                                                         MutableMatrixView dw,
                                                         MutableMatrixView db) const = 0;
};

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_COMPUTE_LINEAR_COMPUTE_H_
