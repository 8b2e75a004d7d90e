#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "clients/c/c_client.h"
#include "clients/c/c_error.h"
#include "clients/c/c_struct.h"
#include "clients/c/planewise.h"
#include "clients/cpp/client_session.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "planewise/v1/session.pb.h"

struct planewise_session {
  std::shared_ptr<planewise::Client> client;  // outlives the session
  std::unique_ptr<planewise::ClientSession> session;
};

struct planewise_operation {
  planewise::OperationTicket ticket;
  bool uses_memory;  // of the caller
};

namespace planewise {
namespace {

// An operation with the memory of its tensors.
struct Call {
  v1::Operation operation;
  std::vector<absl::string_view> inputs;
  std::vector<absl::Span<char>> outputs;
};

absl::Status CheckMemory(const void* data, int64_t size_bytes, absl::string_view name) {
  if (size_bytes >= 0 && (data != nullptr || size_bytes == 0)) return absl::OkStatus();
  return Error(Reason::kInvalidRequest,
               absl::StrCat(name, ": ", data == nullptr ? "no memory" : "memory", " of ",
                            size_bytes, " bytes; give memory of the tensor's size"));
}

absl::Status AddInput(const planewise_tensor& tensor, absl::string_view name, v1::TensorSpec& spec,
                      Call& call) {
  PW_RETURN_IF_ERROR(CheckMemory(tensor.data, tensor.size_bytes, name));
  if (tensor.rank > 0 && tensor.shape == nullptr) {
    return Error(Reason::kInvalidRequest,
                 absl::StrCat(name, ": no shape of ", tensor.rank, " dimensions; give one"));
  }
  spec.mutable_shape()->Add(tensor.shape, tensor.shape + tensor.rank);
  spec.set_data_type(static_cast<v1::DataType>(tensor.data_type));
  call.inputs.emplace_back(static_cast<const char*>(tensor.data), tensor.size_bytes);
  return absl::OkStatus();
}

absl::Status AddOutput(const planewise_buffer& buffer, absl::string_view name, Call& call) {
  PW_RETURN_IF_ERROR(CheckMemory(buffer.data, buffer.size_bytes, name));
  call.outputs.emplace_back(static_cast<char*>(buffer.data), buffer.size_bytes);
  return absl::OkStatus();
}

// Names that are missing are left empty, for the daemon to name.
void SetName(const char* name, std::string* field) {
  if (name != nullptr) *field = name;
}

absl::StatusOr<Call> ForwardCall(const planewise_forward_request* given) {
  PW_RETURN_IF_ERROR(CheckCStruct(given, "planewise_forward_request"));
  const planewise_forward_request request = ReadCStruct(given);
  Call call;
  v1::Forward& forward = *call.operation.mutable_forward();
  SetName(request.model, forward.mutable_model());
  SetName(request.layer, forward.mutable_layer());
  forward.set_step(request.step);
  forward.set_save_for_backward(request.save_for_backward != 0);
  forward.set_weight_gradient(request.weight_gradient != 0);
  forward.set_backward_override(static_cast<v1::BackwardOverride>(request.backward_override));
  forward.set_save_original_input(request.save_original_input != 0);
  forward.set_non_finite_policy(static_cast<v1::NonFinitePolicy>(request.non_finite_policy));
  PW_RETURN_IF_ERROR(AddInput(request.input, "forward input", *forward.mutable_input(), call));
  PW_RETURN_IF_ERROR(AddOutput(request.output, "forward output", call));
  return call;
}

absl::Status SetOperand(const planewise_backward_request& request, v1::Backward& backward,
                        Call& call) {
  if (request.handle != 0) {
    backward.set_handle(request.handle);
    return absl::OkStatus();
  }
  v1::ResentInput& resent = *backward.mutable_input();
  SetName(request.model, resent.mutable_model());
  SetName(request.layer, resent.mutable_layer());
  resent.set_version(request.version);
  resent.set_step(request.step);
  resent.set_backward_override(static_cast<v1::BackwardOverride>(request.backward_override));
  return AddInput(request.input, "backward input", *resent.mutable_input(), call);
}

absl::StatusOr<Call> BackwardCall(const planewise_backward_request* given) {
  PW_RETURN_IF_ERROR(CheckCStruct(given, "planewise_backward_request"));
  const planewise_backward_request request = ReadCStruct(given);
  Call call;
  v1::Backward& backward = *call.operation.mutable_backward();
  PW_RETURN_IF_ERROR(SetOperand(request, backward, call));
  PW_RETURN_IF_ERROR(AddInput(request.output_gradient, "backward output_gradient",
                              *backward.mutable_output_gradient(), call));
  if (request.want_input_gradient != 0) {
    backward.set_input_gradient(true);
    PW_RETURN_IF_ERROR(AddOutput(request.input_gradient, "backward input_gradient", call));
  }
  if (request.want_weight_gradient != 0) {
    backward.set_weight_gradient(true);
    PW_RETURN_IF_ERROR(AddOutput(request.weight_gradient, "backward weight_gradient", call));
  }
  if (request.want_bias_gradient != 0) {
    backward.set_bias_gradient(true);
    PW_RETURN_IF_ERROR(AddOutput(request.bias_gradient, "backward bias_gradient", call));
  }
  backward.set_non_finite_policy(static_cast<v1::NonFinitePolicy>(request.non_finite_policy));
  return call;
}

Call EndStepCall(uint64_t step) {
  Call call;
  call.operation.mutable_end_step()->set_step(step);
  return call;
}

Call ReleaseCall(const uint64_t* handles, size_t handle_count) {
  Call call;
  call.operation.mutable_release()->mutable_handles()->Add(handles, handles + handle_count);
  return call;
}

absl::Status Start(planewise_session* session, absl::StatusOr<Call> call,
                   planewise_operation** operation) {
  PW_RETURN_IF_ERROR(call.status());
  const bool uses_memory = !call->inputs.empty() || !call->outputs.empty();
  PW_ASSIGN_OR_RETURN(OperationTicket ticket,
                      session->session->Start(std::move(call->operation), std::move(call->inputs),
                                              std::move(call->outputs)));
  *operation = new planewise_operation{std::move(ticket), uses_memory};
  return absl::OkStatus();
}

absl::StatusOr<v1::OperationResult> Run(planewise_session* session, absl::StatusOr<Call> call) {
  PW_RETURN_IF_ERROR(call.status());
  return session->session->Run(call->operation, call->inputs, call->outputs);
}

// Cut to fit, with its NUL.
template <size_t kSize>
void CopyText(const std::string& text, char (&out)[kSize]) {
  const size_t size = std::min(text.size(), kSize - 1);
  std::memcpy(out, text.data(), size);
  out[size] = '\0';
}

absl::Status WriteForward(const v1::OperationResult& result, planewise_forward_result* out) {
  if (!result.has_forward()) {
    return Error(Reason::kInvalidRequest, "operation: its result is not a forward's");
  }
  PW_RETURN_IF_ERROR(CheckCStruct(out, "planewise_forward_result"));
  const v1::ForwardResult& forward = result.forward();
  planewise_forward_result full{};
  full.handle = forward.handle();
  full.version = forward.version();
  full.saved_bytes = forward.saved_bytes();
  full.save_original_input = forward.save_original_input();
  CopyText(forward.gemm_path(), full.gemm_path);
  CopyText(forward.save_original_input_why(), full.save_original_input_why);
  WriteCStruct(full, out);
  return absl::OkStatus();
}

absl::Status WriteBackward(const v1::OperationResult& result, planewise_backward_result* out) {
  if (!result.has_backward()) {
    return Error(Reason::kInvalidRequest, "operation: its result is not a backward's");
  }
  PW_RETURN_IF_ERROR(CheckCStruct(out, "planewise_backward_result"));
  const v1::BackwardResult& backward = result.backward();
  planewise_backward_result full{};
  full.version = backward.version();
  full.backward_override = backward.backward_override();
  CopyText(backward.dgrad_path(), full.dgrad_path);
  CopyText(backward.wgrad_path(), full.wgrad_path);
  WriteCStruct(full, out);
  return absl::OkStatus();
}

// The result of an operation that is done.
absl::StatusOr<v1::OperationResult> ResultOf(const planewise_operation& operation) {
  if (!operation.ticket.Wait(absl::ZeroDuration())) {
    return Error(Reason::kInvalidRequest, "operation: it is not done; wait for it first");
  }
  return operation.ticket.result();
}

}  // namespace
}  // namespace planewise

using planewise::ToCError;

planewise_error* planewise_session_open(planewise_client* client,
                                        const planewise_session_options* options,
                                        planewise_session** session) {
  planewise::SessionOptions session_options;
  if (options != nullptr) {
    const absl::Status valid = planewise::CheckCStruct(options, "planewise_session_options");
    if (!valid.ok()) return ToCError(valid);
    session_options.deterministic = planewise::ReadCStruct(options).allow_nondeterministic == 0;
  }
  auto opened = client->client->OpenSession(session_options);
  if (!opened.ok()) return ToCError(opened.status());
  *session = new planewise_session{client->client, *std::move(opened)};
  return nullptr;
}

void planewise_session_close(planewise_session* session) { session->session->Close(); }

void planewise_session_free(planewise_session* session) { delete session; }

planewise_error* planewise_forward_start(planewise_session* session,
                                         const planewise_forward_request* request,
                                         planewise_operation** operation) {
  return ToCError(planewise::Start(session, planewise::ForwardCall(request), operation));
}

planewise_error* planewise_backward_start(planewise_session* session,
                                          const planewise_backward_request* request,
                                          planewise_operation** operation) {
  return ToCError(planewise::Start(session, planewise::BackwardCall(request), operation));
}

planewise_error* planewise_end_step_start(planewise_session* session, uint64_t step,
                                          planewise_operation** operation) {
  return ToCError(planewise::Start(session, planewise::EndStepCall(step), operation));
}

planewise_error* planewise_release_start(planewise_session* session, const uint64_t* handles,
                                         size_t handle_count, planewise_operation** operation) {
  return ToCError(
      planewise::Start(session, planewise::ReleaseCall(handles, handle_count), operation));
}

planewise_error* planewise_operation_wait(planewise_operation* operation, int64_t timeout_ms,
                                          int32_t* done) {
  const absl::Duration timeout =
      timeout_ms < 0 ? absl::InfiniteDuration() : absl::Milliseconds(timeout_ms);
  *done = operation->ticket.Wait(timeout) ? 1 : 0;
  return *done != 0 ? ToCError(operation->ticket.result().status()) : nullptr;
}

planewise_error* planewise_operation_forward_result(planewise_operation* operation,
                                                    planewise_forward_result* result) {
  const auto done = planewise::ResultOf(*operation);
  return ToCError(done.ok() ? planewise::WriteForward(*done, result) : done.status());
}

planewise_error* planewise_operation_backward_result(planewise_operation* operation,
                                                     planewise_backward_result* result) {
  const auto done = planewise::ResultOf(*operation);
  return ToCError(done.ok() ? planewise::WriteBackward(*done, result) : done.status());
}

void planewise_operation_free(planewise_operation* operation) {
  if (operation != nullptr && operation->uses_memory) operation->ticket.Wait();
  delete operation;
}

planewise_error* planewise_forward(planewise_session* session,
                                   const planewise_forward_request* request,
                                   planewise_forward_result* result) {
  const auto done = planewise::Run(session, planewise::ForwardCall(request));
  if (!done.ok() || result == nullptr) return ToCError(done.status());
  return ToCError(planewise::WriteForward(*done, result));
}

planewise_error* planewise_backward(planewise_session* session,
                                    const planewise_backward_request* request,
                                    planewise_backward_result* result) {
  const auto done = planewise::Run(session, planewise::BackwardCall(request));
  if (!done.ok() || result == nullptr) return ToCError(done.status());
  return ToCError(planewise::WriteBackward(*done, result));
}

planewise_error* planewise_end_step(planewise_session* session, uint64_t step) {
  return ToCError(planewise::Run(session, planewise::EndStepCall(step)).status());
}

planewise_error* planewise_release(planewise_session* session, const uint64_t* handles,
                                   size_t handle_count) {
  return ToCError(planewise::Run(session, planewise::ReleaseCall(handles, handle_count)).status());
}
