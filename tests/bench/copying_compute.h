#ifndef PLANEWISE_TESTS_BENCH_COPYING_COMPUTE_H_
#define PLANEWISE_TESTS_BENCH_COPYING_COMPUTE_H_
// A compute that costs next to nothing, for measuring what stands between a
// client and the arithmetic.
//
// Not here: a compute for tests of results (service/compute/fake_linear_compute.h).

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "core/layer/model_version.h"
#include "service/compute/linear_compute.h"

namespace planewise {

// Y's rows are X's rows, cut or filled with zeros to Y's width. There is no
// backward: UNIMPLEMENTED / NOT_SUPPORTED.
class CopyingCompute final : public LinearCompute {
 public:
  absl::StatusOr<LinearForwardPlan> PlanForward(absl::string_view name,
                                                const PrimaryWeight& weight,
                                                const LinearMode& mode, int64_t tokens,
                                                DType activation) const override;
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
};

// Version 1 of `model` with one layer [out, in] that has no planes.
std::shared_ptr<const ModelVersion> MakeHollowVersion(const std::string& model,
                                                      const std::string& layer, int64_t out,
                                                      int64_t in);

}  // namespace planewise

#endif  // PLANEWISE_TESTS_BENCH_COPYING_COMPUTE_H_
