#ifndef PLANEWISE_SERVICE_RPC_SESSIONS_SERVICE_H_
#define PLANEWISE_SERVICE_RPC_SESSIONS_SERVICE_H_
// planewise.v1.Sessions: the stream, and the same operations as unary calls.
//
// Not here: what the calls mean (service/session/session_table.h).

#include "planewise/v1/session.grpc.pb.h"
#include "service/rpc/call.h"
#include "service/session/session_table.h"

namespace planewise {

// Stream carries bytes outside protobuf: its method takes ByteBuffers.
using SessionsBase = v1::Sessions::WithRawCallbackMethod_Stream<
    v1::Sessions::WithCallbackMethod_Open<v1::Sessions::WithCallbackMethod_Execute<
        v1::Sessions::WithCallbackMethod_Heartbeat<
            v1::Sessions::WithCallbackMethod_Close<v1::Sessions::Service>>>>>;

class SessionsService final : public SessionsBase {
 public:
  // `sessions` outlives the service and its calls.
  SessionsService(const RpcEnvironment& environment, SessionTable& sessions)
      : environment_(environment), sessions_(sessions) {}

  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Stream(
      grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* Open(grpc::CallbackServerContext* context,
                                 const v1::OpenSession* request,
                                 v1::SessionOpened* response) override;
  grpc::ServerUnaryReactor* Execute(grpc::CallbackServerContext* context,
                                    const v1::ExecuteRequest* request,
                                    v1::ExecuteResponse* response) override;
  grpc::ServerUnaryReactor* Heartbeat(grpc::CallbackServerContext* context,
                                      const v1::HeartbeatRequest* request,
                                      v1::HeartbeatResponse* response) override;
  grpc::ServerUnaryReactor* Close(grpc::CallbackServerContext* context,
                                  const v1::CloseRequest* request,
                                  v1::CloseResponse* response) override;

 private:
  const RpcEnvironment environment_;
  SessionTable& sessions_;
};

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_RPC_SESSIONS_SERVICE_H_
