#include "service/rpc/call.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/status/grpc_status.h"
#include "service/auth/access_rules.h"

namespace planewise {
namespace {

// Longer ones are not ids but payloads; the log would carry them.
constexpr size_t kRequestIdBytesMax = 128;

// The value of `key`, if the client sent it exactly once.
std::optional<absl::string_view> Metadata(const grpc::CallbackServerContext& context,
                                          const char* key) {
  const auto [first, last] = context.client_metadata().equal_range(key);
  if (first == last || std::next(first) != last) return std::nullopt;
  return absl::string_view(first->second.data(), first->second.size());
}

bool IsShortAndPrintable(absl::string_view text) {
  return !text.empty() && text.size() <= kRequestIdBytesMax &&
         std::all_of(text.begin(), text.end(), absl::ascii_isprint);
}

// Unique within the log of one daemon.
std::string MakeRequestId(const Clock& clock) {
  static std::atomic<uint32_t> next = 0;
  return absl::StrFormat("%011x%05x", absl::ToUnixMillis(clock.WallTime()), next++ & 0xFFFFF);
}

}  // namespace

Call::Call(const RpcEnvironment& environment, grpc::CallbackServerContext& context, CallKind kind,
           absl::string_view method)
    : environment_(environment), kind_(kind), started_(environment.clock->Now()) {
  if (kind_ != CallKind::kStream) ++*environment_.open_calls;
  record_.method = std::string(method);
  record_.peer = context.peer();
  const auto request_id = Metadata(context, kRequestIdKey);
  record_.request_id = request_id && IsShortAndPrintable(*request_id)
                           ? std::string(*request_id)
                           : MakeRequestId(*environment.clock);
  const auto trace_parent = Metadata(context, "traceparent");
  if (trace_parent && IsShortAndPrintable(*trace_parent)) {
    record_.trace_parent = std::string(*trace_parent);
  }
  context.AddInitialMetadata(kRequestIdKey, record_.request_id);
}

std::shared_ptr<Call> Call::Begin(const RpcEnvironment& environment,
                                  grpc::CallbackServerContext& context, CallKind kind,
                                  absl::string_view method) {
  std::shared_ptr<Call> call(new Call(environment, context, kind, method));
  absl::StatusOr<Principal> principal = environment.gate->Admit(
      {call->record_.peer, Metadata(context, "authorization")}, kind);
  call->admission_ = principal.status();
  if (principal.ok()) call->record_.principal = *std::move(principal);
  return call;
}

grpc::Status Call::Close(const absl::Status& status) {
  closed_ = true;
  on_cancel_ = nullptr;
  record_.status = status;
  record_.duration = environment_.clock->Now() - started_;
  environment_.log->Ended(record_);
  if (kind_ != CallKind::kStream) --*environment_.open_calls;
  return StatusToGrpc(status);
}

void Call::OnCancel(absl::AnyInvocable<void() &&> react) {
  if (cancelled_) {
    std::move(react)();
  } else {
    on_cancel_ = std::move(react);
  }
}

void Call::PostCancel() {
  executor().Post([call = shared_from_this()] {
    call->cancelled_ = true;
    if (!call->closed_ && call->on_cancel_) std::move(call->on_cancel_)();
  });
}

}  // namespace planewise
