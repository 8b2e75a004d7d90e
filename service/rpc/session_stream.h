#ifndef PLANEWISE_SERVICE_RPC_SESSION_STREAM_H_
#define PLANEWISE_SERVICE_RPC_SESSION_STREAM_H_
// Sessions.Stream on gRPC: carries frames between the wire and the session
// table, one read and one write in flight; a few frames that were read may wait
// for the executor, or for their bytes to be copied. Tensor bytes do not pass
// through protobuf: read, they go from gRPC's slices to the session; written, they
// are lent from where they lie.
//
// Not here: what a frame means (service/session/), how it is encoded
// (proto/frame/).

#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "service/rpc/call.h"
#include "service/session/session_table.h"

namespace planewise {

// `sessions` outlives the call. The call ends with OK once `ended` was written,
// which says why the stream ended.
grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* StartSessionStream(
    const RpcEnvironment& environment, grpc::CallbackServerContext& context,
    SessionTable& sessions);

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_RPC_SESSION_STREAM_H_
