#include "service/session/operation_runner.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "proto/recipe/recipe_codec.h"
#include "proto/status/status_codec.h"
#include "service/rpc/tensor_conversion.h"
#include "service/session/layer_request.h"

namespace planewise {
namespace {

NonFinitePolicy PolicyOf(v1::NonFinitePolicy policy) {
  return policy == v1::NON_FINITE_POLICY_REJECT ? NonFinitePolicy::kReject
                                                : NonFinitePolicy::kFormat;
}

// A spec of `like`'s leading dimensions and type with `features` as the last.
v1::TensorSpec WithFeatures(const v1::TensorSpec& like, int64_t features) {
  v1::TensorSpec spec = like;
  spec.set_shape(spec.shape_size() - 1, features);
  return spec;
}

absl::StatusOr<int64_t> MatrixBytes(DType dtype, int64_t rows, int64_t columns) {
  PW_ASSIGN_OR_RETURN(const int64_t elements, CheckedMultiply(rows, columns));
  return SizeBytes(dtype, elements);
}

}  // namespace

OperationOutcome FailedOutcome(const absl::Status& status) {
  OperationOutcome outcome;
  *outcome.header.mutable_status() = StatusToProto(status);
  return outcome;
}

OperationRunner::OperationRunner(const SessionLimits& limits, LeaseSource& models,
                                 LinearExecutor& compute, std::string owner)
    : limits_(limits),
      models_(models),
      compute_(compute),
      owner_(std::move(owner)),
      steps_(limits),
      operands_(limits) {}

absl::StatusOr<PreparedOperation> OperationRunner::Prepare(const v1::Operation& operation) {
  switch (operation.kind_case()) {
    case v1::Operation::kForward:
      return PrepareForward(operation.forward());
    case v1::Operation::kBackward:
      return PrepareBackward(operation.backward());
    case v1::Operation::kEndStep:
      return PrepareEndStep(operation.end_step());
    case v1::Operation::kRelease:
      return PrepareRelease(operation.release());
    case v1::Operation::KIND_NOT_SET:
      break;
  }
  return Error(Reason::kInternal, absl::StrCat(owner_, ": an operation without a kind"));
}

// Forward.

struct OperationRunner::ForwardCall {
  v1::Forward forward;
  PinnedLayer layer;
  LinearForwardPlan plan;
  // The pin that the step gets if this forward succeeds; empty if it has one.
  WeightLease new_pin;
};

absl::StatusOr<PreparedOperation> OperationRunner::PrepareForward(const v1::Forward& forward) {
  auto call = std::make_shared<ForwardCall>();
  call->forward = forward;
  const StepId step(forward.step());
  PW_ASSIGN_OR_RETURN(const WeightLease* pin, steps_.Find(step, forward.model()));
  if (pin == nullptr) {
    PW_RETURN_IF_ERROR(steps_.CheckRoom(step));
    LeaseRequest request;
    request.model = forward.model();
    request.holder = absl::StrCat(owner_, ", step ", step.value());
    PW_ASSIGN_OR_RETURN(call->new_pin, models_.Lease(std::move(request)));
    pin = &call->new_pin;
  }
  PW_ASSIGN_OR_RETURN(call->layer, FindLayer(pin->version(), forward.layer()));

  const MatrixShape weight = call->layer->weight->shape;
  const std::string layer = LayerText(forward.model(), forward.layer());
  PW_ASSIGN_OR_RETURN(const FlatTensor input,
                      FlattenTensor(forward.input(), "forward.input", limits_));
  PW_RETURN_IF_ERROR(CheckFeatures(layer, "forward.input.shape", forward.input(), weight.in));
  PW_ASSIGN_OR_RETURN(LinearMode mode,
                      ModeFor(*call->layer.version, layer, forward.backward_override(),
                              "forward.backward_override",
                              forward.save_for_backward() && forward.weight_gradient()));
  mode.save_for_backward = forward.save_for_backward();
  mode.save_original_input = forward.save_original_input();
  PW_ASSIGN_OR_RETURN(call->plan,
                      compute_.PlanForward(call->layer, mode, input.tokens, input.dtype));
  if (mode.save_for_backward) PW_RETURN_IF_ERROR(operands_.CheckRoom(call->plan.saved_bytes));

  PreparedOperation prepared;
  PW_ASSIGN_OR_RETURN(prepared.result_bytes, MatrixBytes(input.dtype, input.tokens, weight.out));
  prepared.run = [self = weak_from_this(), this, call](std::vector<HostBuffer> inputs,
                                                       PreparedOperation::Done done) {
    ForwardJob job;
    job.layer = call->layer;
    job.plan = call->plan;
    job.non_finite = PolicyOf(call->forward.non_finite_policy());
    job.x = std::move(inputs.front());
    compute_.Forward(std::move(job),
                     [self, call, done = std::move(done)](
                         absl::StatusOr<ForwardOutput> output) mutable {
                       if (const auto runner = self.lock()) {
                         std::move(done)(runner->FinishForward(*call, std::move(output)));
                       }
                     });
  };
  return prepared;
}

OperationOutcome OperationRunner::FinishForward(ForwardCall& call,
                                                absl::StatusOr<ForwardOutput> output) {
  if (!output.ok()) return FailedOutcome(output.status());
  const StepId step(call.forward.step());
  if (call.new_pin.valid()) steps_.Pin(step, call.forward.model(), std::move(call.new_pin));
  const absl::StatusOr<const WeightLease*> pin = steps_.Find(step, call.forward.model());
  if (!pin.ok()) return FailedOutcome(pin.status());
  if (*pin == nullptr) {
    return FailedOutcome(Error(
        Reason::kLeaseRevoked,
        absl::StrCat("step ", step.value(), ": version ", call.layer.version->version.value(),
                     " of model \"", call.forward.model(),
                     "\" was given up while the forward ran; begin the step again")));
  }
  OperationOutcome outcome;
  v1::ForwardResult& result = *outcome.header.mutable_forward();
  *result.mutable_output() = WithFeatures(call.forward.input(), call.layer->weight->shape.out);
  result.set_version(call.layer.version->version.value());
  result.set_gemm_path(std::string(Name(output->path)));
  if (output->saved != nullptr) {
    result.set_saved_bytes(output->saved->size_bytes());
    result.set_handle(
        operands_.Add(std::move(output->saved), call.forward.layer(), **pin).value());
    result.set_save_original_input(call.plan.save_original_input);
    result.set_save_original_input_why(call.plan.save_original_input_why);
  }
  outcome.tensors.push_back(std::move(output->y));
  return outcome;
}

// Backward.

struct OperationRunner::BackwardCall {
  v1::Backward backward;
  HandleId handle;  // 0: the input was sent again
  BackwardJob job;  // all but the tensors
  LinearGradients wanted;
  MatrixShape weight;
  WeightVersion version;
  BackwardOverride backward_override = BackwardOverride::kNone;
};

// The operand, shapes and mode of a backward by handle.
absl::Status OperationRunner::ResolveSaved(const v1::Backward& backward, BackwardCall& call) {
  call.handle = HandleId(backward.handle());
  PW_ASSIGN_OR_RETURN(const Operand* operand, operands_.Find(call.handle));
  const SavedOperand& saved = *operand->saved;
  call.version = operand->version;
  call.backward_override = saved.mode.recipe.backward_override;
  call.job.layer = operand->layer;
  call.job.saved = operand->saved;
  call.job.weight = saved.weight->shape;
  call.job.tokens = saved.tokens;
  call.job.activation = saved.activation;
  if (call.job.wanted.bias && !saved.has_bias) {
    return Error(Reason::kInvalidRequest,
                 absl::StrCat("layer \"", operand->layer,
                              "\": bias_gradient is asked for, but it has no bias"));
  }
  return compute_.PlanBackward(call.job.layer, saved, call.job.wanted).status();
}

// The same with X sent again. The step's pin keeps the version, or it is live
// for another reason.
absl::Status OperationRunner::ResolveResent(const v1::Backward& backward, BackwardCall& call) {
  const v1::ResentInput& resent = backward.input();
  const std::string layer = LayerText(resent.model(), resent.layer());
  call.version = WeightVersion(resent.version());
  PW_ASSIGN_OR_RETURN(const WeightLease* pin, steps_.Find(StepId(resent.step()), resent.model()));
  std::shared_ptr<const ModelVersion> version = pin == nullptr ? nullptr : pin->version();
  if (version == nullptr || version->version != call.version) {
    LeaseRequest request;
    request.model = resent.model();
    request.version = call.version;
    request.holder = absl::StrCat(owner_, ", step ", resent.step());
    PW_ASSIGN_OR_RETURN(const WeightLease lease, models_.Lease(std::move(request)));
    version = lease.version();
  }
  ResentOperand operand;
  PW_ASSIGN_OR_RETURN(operand.layer, FindLayer(std::move(version), resent.layer()));
  const PrimaryWeight& weight = *operand.layer->weight;
  if (call.job.wanted.bias && operand.layer->bias == nullptr) {
    return Error(Reason::kInvalidRequest,
                 absl::StrCat(layer, ": bias_gradient is asked for, but it has no bias"));
  }
  PW_ASSIGN_OR_RETURN(const FlatTensor input,
                      FlattenTensor(resent.input(), "backward.input.input", limits_));
  PW_RETURN_IF_ERROR(
      CheckFeatures(layer, "backward.input.input.shape", resent.input(), weight.shape.in));
  PW_ASSIGN_OR_RETURN(
      LinearMode mode,
      ModeFor(*operand.layer.version, layer, resent.backward_override(),
              "backward.input.backward_override", call.job.wanted.weight));
  mode.save_for_backward = true;
  PW_ASSIGN_OR_RETURN(operand.plan,
                      compute_.PlanForward(operand.layer, mode, input.tokens, input.dtype));
  call.backward_override = mode.recipe.backward_override;
  call.job.layer = resent.layer();
  call.job.weight = weight.shape;
  call.job.tokens = input.tokens;
  call.job.activation = input.dtype;
  call.job.resent = std::move(operand);
  return absl::OkStatus();
}

absl::StatusOr<PreparedOperation> OperationRunner::PrepareBackward(const v1::Backward& backward) {
  auto call = std::make_shared<BackwardCall>();
  call->backward = backward;
  BackwardJob& job = call->job;
  job.wanted = {backward.input_gradient(), backward.weight_gradient(), backward.bias_gradient()};
  job.non_finite = PolicyOf(backward.non_finite_policy());
  PW_RETURN_IF_ERROR(backward.has_input() ? ResolveResent(backward, *call)
                                          : ResolveSaved(backward, *call));

  const std::string layer = absl::StrCat("layer \"", job.layer, "\"");
  PW_ASSIGN_OR_RETURN(const FlatTensor gradient, FlattenTensor(backward.output_gradient(),
                                                               "backward.output_gradient",
                                                               limits_));
  PW_RETURN_IF_ERROR(CheckFeatures(layer, "backward.output_gradient.shape",
                                   backward.output_gradient(), job.weight.out));
  if (gradient.tokens != job.tokens || gradient.dtype != job.activation) {
    return Error(Reason::kShapeMismatch,
                 absl::StrCat(layer, ": output_gradient is ", Name(gradient.dtype), " of ",
                              gradient.tokens, " tokens, the forward's input was ",
                              Name(job.activation), " of ", job.tokens, " tokens"))
        .With("observedTokens", gradient.tokens)
        .With("requiredTokens", job.tokens);
  }

  call->wanted = job.wanted;
  call->weight = job.weight;

  PreparedOperation prepared;
  const auto add = [&prepared](absl::StatusOr<int64_t> bytes) {
    if (bytes.ok()) prepared.result_bytes += *bytes;
    return bytes.status();
  };
  if (job.wanted.input) {
    PW_RETURN_IF_ERROR(add(MatrixBytes(job.activation, job.tokens, job.weight.in)));
  }
  if (job.wanted.weight) {
    PW_RETURN_IF_ERROR(add(MatrixBytes(DType::kF32, job.weight.out, job.weight.in)));
  }
  if (job.wanted.bias) PW_RETURN_IF_ERROR(add(MatrixBytes(DType::kF32, 1, job.weight.out)));

  prepared.run = [self = weak_from_this(), this, call](std::vector<HostBuffer> inputs,
                                                       PreparedOperation::Done done) {
    BackwardJob job = std::move(call->job);
    if (job.resent.has_value()) job.resent->x = std::move(inputs.front());
    job.dy = std::move(inputs.back());
    compute_.Backward(std::move(job),
                      [self, call, done = std::move(done)](
                          absl::StatusOr<BackwardOutput> output) mutable {
                        if (const auto runner = self.lock()) {
                          std::move(done)(runner->FinishBackward(*call, std::move(output)));
                        }
                      });
  };
  return prepared;
}

OperationOutcome OperationRunner::FinishBackward(BackwardCall& call,
                                                 absl::StatusOr<BackwardOutput> output) {
  if (!output.ok()) return FailedOutcome(output.status());
  operands_.Remove(call.handle);
  OperationOutcome outcome;
  v1::BackwardResult& result = *outcome.header.mutable_backward();
  result.set_version(call.version.value());
  result.set_backward_override(ToProto(call.backward_override));
  if (call.wanted.input) {
    *result.mutable_input_gradient() =
        WithFeatures(call.backward.output_gradient(), call.weight.in);
    result.set_dgrad_path(std::string(Name(output->plan.dgrad_path)));
    outcome.tensors.push_back(std::move(output->dx));
  }
  if (call.wanted.weight) {
    *result.mutable_weight_gradient() = MatrixSpec(DType::kF32, call.weight.out, call.weight.in);
    result.set_wgrad_path(std::string(Name(output->plan.wgrad_path)));
    outcome.tensors.push_back(std::move(output->dw));
  }
  if (call.wanted.bias) {
    v1::TensorSpec& spec = *result.mutable_bias_gradient();
    spec.set_data_type(ToProto(DType::kF32));
    spec.add_shape(call.weight.out);
    outcome.tensors.push_back(std::move(output->db));
  }
  return outcome;
}

// Operations without tensors.

absl::StatusOr<PreparedOperation> OperationRunner::PrepareEndStep(const v1::EndStep& end_step) {
  PreparedOperation prepared;
  prepared.run = [this, step = StepId(end_step.step())](const std::vector<HostBuffer>&,
                                                        PreparedOperation::Done done) {
    steps_.End(step);
    OperationOutcome outcome;
    outcome.header.mutable_end_step();
    std::move(done)(std::move(outcome));
  };
  return prepared;
}

absl::StatusOr<PreparedOperation> OperationRunner::PrepareRelease(
    const v1::ReleaseOperands& release) {
  for (const uint64_t handle : release.handles()) {
    PW_RETURN_IF_ERROR(operands_.CheckExisted(HandleId(handle)));
  }
  PreparedOperation prepared;
  prepared.run = [this, release](const std::vector<HostBuffer>&, PreparedOperation::Done done) {
    OperationOutcome outcome;
    int64_t freed_bytes = 0;
    for (const uint64_t handle : release.handles()) {
      freed_bytes += operands_.Remove(HandleId(handle));
    }
    outcome.header.mutable_release()->set_freed_bytes(freed_bytes);
    std::move(done)(std::move(outcome));
  };
  return prepared;
}

}  // namespace planewise
