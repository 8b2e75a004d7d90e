#ifndef PLANEWISE_PROTO_STATUS_GRPC_STATUS_H_
#define PLANEWISE_PROTO_STATUS_GRPC_STATUS_H_
// absl::Status as a call's grpc::Status and back. The google.rpc.Status travels
// in the trailer `grpc-status-details-bin`, where gRPC libraries of every
// language look for it.
//
// Not here: the details themselves (status_codec.h).

#include <cstddef>

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace planewise {

// A call's trailers must stay below the 8 KiB that gRPC peers accept, or the
// peer reports its own limit instead of our error. Details go out in base64
// (4/3), the message may be percent-encoded (3), and both must leave room for
// other trailers: 4/3 * 4096 + 2 * 1024 = 7509 of 8192, for messages that are
// at most half non-ASCII.
inline constexpr size_t kDetailsBytesMax = 4096;
inline constexpr size_t kMessageBytesMax = 1024;

// Violations that do not fit kDetailsBytesMax are left out, and the metadata key
// "violationsOmitted" says how many; a message longer than kMessageBytesMax ends
// with "... (cut)".
grpc::Status StatusToGrpc(const absl::Status& status);

// A status without details (gRPC's own, or another server's) gets the reason
// that DefaultReason gives its code.
absl::Status StatusFromGrpc(const grpc::Status& status);

}  // namespace planewise

#endif  // PLANEWISE_PROTO_STATUS_GRPC_STATUS_H_
