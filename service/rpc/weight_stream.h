#ifndef PLANEWISE_SERVICE_RPC_WEIGHT_STREAM_H_
#define PLANEWISE_SERVICE_RPC_WEIGHT_STREAM_H_
// ReadWeights: tensors one after another, a header and then chunks that are lent
// to gRPC where they lie. The next chunk is made when the one before has gone,
// so a slow reader costs one chunk and, dequantized, one weight.
//
// Not here: which bytes, and their lease (service/weights/).

#include <cstdint>

#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "service/rpc/call.h"
#include "service/weights/model_catalog.h"

namespace planewise {

// `request` is an encoded v1::ReadWeightsRequest. `catalog` outlives the call.
grpc::ServerWriteReactor<grpc::ByteBuffer>* StartReadWeights(
    const RpcEnvironment& environment, grpc::CallbackServerContext& context,
    const grpc::ByteBuffer& request, ModelCatalog& catalog, int64_t chunk_bytes);

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_RPC_WEIGHT_STREAM_H_
