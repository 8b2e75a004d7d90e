#ifndef PLANEWISE_SERVICE_RPC_UNARY_CALL_H_
#define PLANEWISE_SERVICE_RPC_UNARY_CALL_H_
// A call with one request and one response: its logic runs on the executor and
// answers there, at once or later.
//
//   return StartUnary(environment, *context, CallKind::kExisting, "Models.GetModel", *response,
//                     [this, request](Call& call, DoneCallback<v1::Model> reply) { ... });
//
// Not here: streams (progress_stream.h).

#include <memory>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "grpcpp/support/server_callback.h"
#include "service/rpc/call.h"

namespace planewise {

class UnaryReactor final : public grpc::ServerUnaryReactor {
 public:
  explicit UnaryReactor(std::shared_ptr<Call> call) : call_(std::move(call)) {}

  void OnCancel() override { call_->PostCancel(); }
  void OnDone() override { delete this; }

  // Ends the call. Do not touch the reactor afterwards.
  void End(const absl::Status& status) { Finish(call_->Close(status)); }

 private:
  const std::shared_ptr<Call> call_;
};

// Answers a unary call: once, on the executor. Dropping it would leave the
// client waiting.
template <typename Response>
using Reply = absl::AnyInvocable<void(absl::StatusOr<Response>) &&>;

// Request and response live until the reply has been given.
template <typename Response>
grpc::ServerUnaryReactor* StartUnary(
    const RpcEnvironment& environment, grpc::CallbackServerContext& context, CallKind kind,
    absl::string_view method, Response& response,
    absl::AnyInvocable<void(Call&, Reply<Response>) &&> logic) {
  std::shared_ptr<Call> call = Call::Begin(environment, context, kind, method);
  auto* reactor = new UnaryReactor(call);
  if (!call->admission().ok()) {
    reactor->End(call->admission());
    return reactor;
  }
  call->executor().Post([call, reactor, &response, logic = std::move(logic)]() mutable {
    std::move(logic)(*call, [reactor, &response](absl::StatusOr<Response> result) {
      const absl::Status status = result.status();
      if (status.ok()) response = *std::move(result);
      reactor->End(status);
    });
  });
  return reactor;
}

// `done` for a callee that answers with another type: what `convert` makes of a
// value, or the failure as it is.
template <typename Response, typename Convert>
auto ReplyWith(Reply<Response> reply, Convert convert) {
  return [reply = std::move(reply), convert = std::move(convert)](auto result) mutable {
    if (!result.ok()) {
      std::move(reply)(result.status());
    } else {
      std::move(reply)(convert(*std::move(result)));
    }
  };
}

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_RPC_UNARY_CALL_H_
