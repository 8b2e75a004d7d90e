#ifndef PLANEWISE_SERVICE_COMPUTE_LINEAR_EXECUTOR_H_
#define PLANEWISE_SERVICE_COMPUTE_LINEAR_EXECUTOR_H_
// Runs one forward or backward on the compute lane: plans first, so that what
// is refused costs nothing; allocates the result; checks for non-finite input;
// hands back result bytes and what the forward saved.
//
// Not here: which version, handle or id an operation belongs to
// (service/session/).

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "core/layer/linear.h"
#include "core/layer/model_version.h"
#include "core/tensor/host_buffer.h"
#include "core/tensor/memory_budget.h"
#include "service/compute/linear_compute.h"
#include "service/compute/non_finite_policy.h"
#include "service/schedule/background_runner.h"

namespace planewise {

// A layer within the version that keeps it alive.
struct PinnedLayer {
  std::shared_ptr<const ModelVersion> version;
  const HostedLayer* layer = nullptr;

  const HostedLayer& operator*() const { return *layer; }
  const HostedLayer* operator->() const { return layer; }
};

struct ForwardJob {
  PinnedLayer layer;
  LinearForwardPlan plan;
  NonFinitePolicy non_finite = NonFinitePolicy::kFormat;
  HostBuffer x;  // [tokens, in] in plan.activation
};

struct ForwardOutput {
  HostBuffer y;  // [tokens, out] in plan.activation
  GemmPath path = GemmPath::kExpanded;
  std::shared_ptr<const SavedOperand> saved;  // nullptr unless asked for
};

// X sent again, in place of a saved operand.
struct ResentOperand {
  PinnedLayer layer;
  LinearForwardPlan plan;
  HostBuffer x;  // [tokens, in]
};

struct BackwardJob {
  std::string layer;  // for messages
  // Exactly one of them.
  std::shared_ptr<const SavedOperand> saved;
  std::optional<ResentOperand> resent;
  LinearGradients wanted;
  NonFinitePolicy non_finite = NonFinitePolicy::kFormat;
  int64_t tokens = 0;
  MatrixShape weight;  // [out, in]
  DType activation = DType::kBF16;
  HostBuffer dy;  // [tokens, out] in `activation`
};

struct BackwardOutput {
  HostBuffer dx;  // [tokens, in] in the activation type; empty if not wanted
  HostBuffer dw;  // [out, in], F32
  HostBuffer db;  // [out], F32
  LinearBackwardPlan plan;
};

// One thread (the executor's). Callbacks run on the executor, never inside the
// call.
class LinearExecutor {
 public:
  // All outlive it.
  LinearExecutor(const LinearCompute& compute, BackgroundRunner& runner,
                 std::shared_ptr<MemoryBudget> budget);

  // Before anything is allocated or waited for; also what a session may promise
  // of the result's size.
  absl::StatusOr<LinearForwardPlan> PlanForward(const PinnedLayer& layer, const LinearMode& mode,
                                                int64_t tokens, DType activation) const;
  absl::StatusOr<LinearBackwardPlan> PlanBackward(absl::string_view layer,
                                                  const SavedOperand& operand,
                                                  LinearGradients wanted) const;

  // RESOURCE_EXHAUSTED, NON_FINITE_IN_TENSOR, and as core/layer/linear.h.
  void Forward(ForwardJob job, absl::AnyInvocable<void(absl::StatusOr<ForwardOutput>) &&> done);
  void Backward(BackwardJob job,
                absl::AnyInvocable<void(absl::StatusOr<BackwardOutput>) &&> done);

 private:
  const LinearCompute& compute_;
  BackgroundRunner& runner_;
  std::shared_ptr<MemoryBudget> budget_;
};

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_COMPUTE_LINEAR_EXECUTOR_H_
