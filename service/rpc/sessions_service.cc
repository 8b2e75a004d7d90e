#include "service/rpc/sessions_service.h"

#include <utility>

#include "absl/status/statusor.h"
#include "service/rpc/session_stream.h"
#include "service/rpc/unary_call.h"

namespace planewise {
namespace {

v1::ExecuteResponse ToProto(UnaryResult executed) {
  v1::ExecuteResponse response;
  *response.mutable_result() = std::move(executed.result);
  for (const absl::Span<const std::byte> piece : executed.bytes) {
    response.mutable_outputs()->append(reinterpret_cast<const char*>(piece.data()), piece.size());
  }
  return response;
}

}  // namespace

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* SessionsService::Stream(
    grpc::CallbackServerContext* context) {
  return StartSessionStream(environment_, *context, sessions_);
}

grpc::ServerUnaryReactor* SessionsService::Open(grpc::CallbackServerContext* context,
                                                const v1::OpenSession* request,
                                                v1::SessionOpened* response) {
  return StartUnary<v1::SessionOpened>(
      environment_, *context, CallKind::kNew, "Sessions.Open", *response,
      [this, request](Call& call, Reply<v1::SessionOpened> reply) {
        std::move(reply)(sessions_.Open(call.principal(), *request));
      });
}

grpc::ServerUnaryReactor* SessionsService::Execute(grpc::CallbackServerContext* context,
                                                   const v1::ExecuteRequest* request,
                                                   v1::ExecuteResponse* response) {
  return StartUnary<v1::ExecuteResponse>(
      environment_, *context, CallKind::kExisting, "Sessions.Execute", *response,
      [this, request](Call& call, Reply<v1::ExecuteResponse> reply) {
        sessions_.Execute(call.principal(), *request,
                          ReplyWith(std::move(reply), [](UnaryResult executed) {
                            return ToProto(std::move(executed));
                          }));
      });
}

grpc::ServerUnaryReactor* SessionsService::Heartbeat(grpc::CallbackServerContext* context,
                                                     const v1::HeartbeatRequest* request,
                                                     v1::HeartbeatResponse* response) {
  return StartUnary<v1::HeartbeatResponse>(
      environment_, *context, CallKind::kExisting, "Sessions.Heartbeat", *response,
      [this, request](Call& call, Reply<v1::HeartbeatResponse> reply) {
        std::move(reply)(sessions_.Heartbeat(call.principal(), *request));
      });
}

grpc::ServerUnaryReactor* SessionsService::Close(grpc::CallbackServerContext* context,
                                                 const v1::CloseRequest* request,
                                                 v1::CloseResponse* response) {
  return StartUnary<v1::CloseResponse>(
      environment_, *context, CallKind::kExisting, "Sessions.Close", *response,
      [this, request](Call& call, Reply<v1::CloseResponse> reply) {
        const absl::Status status = sessions_.Close(call.principal(), *request);
        if (!status.ok()) return std::move(reply)(status);
        std::move(reply)(v1::CloseResponse());
      });
}

}  // namespace planewise
