#include "service/compute/linear_executor.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace planewise {
namespace {

// A result [rows, columns]. Every byte of it is written by the compute.
absl::StatusOr<HostBuffer> AllocateResult(MemoryBudget& budget, absl::string_view what,
                                          MatrixShape shape, DType dtype) {
  PW_ASSIGN_OR_RETURN(const int64_t size_bytes, SizeBytes(dtype, shape.elements()));
  return HostBuffer::AllocateUninitialized(budget, MemoryUse::kTransport, size_bytes, what);
}

MatrixView ViewOf(const HostBuffer& buffer, DType dtype, int64_t rows, int64_t columns) {
  return {buffer.data(), dtype, rows, columns};
}

MutableMatrixView MutableViewOf(HostBuffer& buffer, DType dtype, int64_t rows, int64_t columns) {
  return {buffer.data(), dtype, rows, columns};
}

absl::StatusOr<ForwardOutput> RunForward(const LinearCompute& compute, MemoryBudget& budget,
                                         ForwardJob job) {
  const HostedLayer& layer = *job.layer;
  const MatrixShape weight = layer.weight->shape;
  const LinearForwardPlan& plan = job.plan;
  const std::string input_name = absl::StrCat("input of layer \"", layer.name, "\"");
  PW_RETURN_IF_ERROR(CheckFinite(job.non_finite, input_name,
                                 ViewOf(job.x, plan.activation, plan.tokens, weight.in)));
  ForwardOutput output;
  PW_ASSIGN_OR_RETURN(output.y,
                      AllocateResult(budget, absl::StrCat("output of layer \"", layer.name, "\""),
                                     {plan.tokens, weight.out}, plan.activation));
  PW_ASSIGN_OR_RETURN(
      LinearForwardOutcome outcome,
      compute.RunForward(plan, layer, std::move(job.x),
                         MutableViewOf(output.y, plan.activation, plan.tokens, weight.out)));
  output.path = outcome.path;
  output.saved = std::move(outcome.saved);
  return output;
}

absl::StatusOr<BackwardOutput> RunBackward(const LinearCompute& compute, MemoryBudget& budget,
                                           BackwardJob job) {
  const std::string gradient_name =
      absl::StrCat("output_gradient of layer \"", job.layer, "\"");
  const MatrixView dy = ViewOf(job.dy, job.activation, job.tokens, job.weight.out);
  PW_RETURN_IF_ERROR(CheckFinite(job.non_finite, gradient_name, dy));
  if (job.resent.has_value()) {
    const MatrixView x = ViewOf(job.resent->x, job.activation, job.tokens, job.weight.in);
    PW_RETURN_IF_ERROR(
        CheckFinite(job.non_finite, absl::StrCat("input of layer \"", job.layer, "\""), x));
    PW_ASSIGN_OR_RETURN(job.saved, compute.SaveOperand(job.resent->plan, *job.resent->layer,
                                                       std::move(job.resent->x)));
  }
  PW_ASSIGN_OR_RETURN(const LinearBackwardPlan plan,
                      compute.PlanBackward(job.layer, *job.saved, job.wanted));

  BackwardOutput output;
  const std::string what = absl::StrCat("gradients of layer \"", job.layer, "\"");
  if (job.wanted.input) {
    PW_ASSIGN_OR_RETURN(output.dx, AllocateResult(budget, what, {job.tokens, job.weight.in},
                                                  job.activation));
  }
  if (job.wanted.weight) {
    PW_ASSIGN_OR_RETURN(output.dw, AllocateResult(budget, what, job.weight, DType::kF32));
  }
  if (job.wanted.bias) {
    PW_ASSIGN_OR_RETURN(output.db, AllocateResult(budget, what, {1, job.weight.out}, DType::kF32));
  }
  PW_ASSIGN_OR_RETURN(
      output.plan,
      compute.RunBackward(plan, *job.saved, dy,
                          MutableViewOf(output.dx, job.activation, job.tokens, job.weight.in),
                          MutableViewOf(output.dw, DType::kF32, job.weight.out, job.weight.in),
                          MutableViewOf(output.db, DType::kF32, 1, job.weight.out)));
  return output;
}

// Runs `run(job)` on the compute lane and `done` with what it gave.
template <typename Job, typename Output, typename Run>
void RunOnComputeLane(BackgroundRunner& runner, Job job, Run run,
                      absl::AnyInvocable<void(absl::StatusOr<Output>) &&> done) {
  struct Call {
    Job job;
    absl::StatusOr<Output> output = absl::CancelledError();
    absl::AnyInvocable<void(absl::StatusOr<Output>) &&> done;
  };
  auto call = std::make_shared<Call>();
  call->job = std::move(job);
  call->done = std::move(done);
  runner.Run(
      Lane::kCompute, [call, run] { call->output = run(std::move(call->job)); },
      [call] { std::move(call->done)(std::move(call->output)); });
}

}  // namespace

LinearExecutor::LinearExecutor(const LinearCompute& compute, BackgroundRunner& runner,
                               std::shared_ptr<MemoryBudget> budget)
    : compute_(compute), runner_(runner), budget_(std::move(budget)) {}

absl::StatusOr<LinearForwardPlan> LinearExecutor::PlanForward(const PinnedLayer& layer,
                                                              const LinearMode& mode,
                                                              int64_t tokens,
                                                              DType activation) const {
  return compute_.PlanForward(layer->name, *layer->weight, mode, tokens, activation);
}

absl::StatusOr<LinearBackwardPlan> LinearExecutor::PlanBackward(absl::string_view layer,
                                                                const SavedOperand& operand,
                                                                LinearGradients wanted) const {
  return compute_.PlanBackward(layer, operand, wanted);
}

void LinearExecutor::Forward(ForwardJob job,
                             absl::AnyInvocable<void(absl::StatusOr<ForwardOutput>) &&> done) {
  RunOnComputeLane<ForwardJob, ForwardOutput>(
      runner_, std::move(job),
      [this](ForwardJob moved) { return RunForward(compute_, *budget_, std::move(moved)); },
      std::move(done));
}

void LinearExecutor::Backward(BackwardJob job,
                              absl::AnyInvocable<void(absl::StatusOr<BackwardOutput>) &&> done) {
  RunOnComputeLane<BackwardJob, BackwardOutput>(
      runner_, std::move(job),
      [this](BackwardJob moved) { return RunBackward(compute_, *budget_, std::move(moved)); },
      std::move(done));
}

}  // namespace planewise
