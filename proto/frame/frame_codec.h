#ifndef PLANEWISE_PROTO_FRAME_FRAME_CODEC_H_
#define PLANEWISE_PROTO_FRAME_FRAME_CODEC_H_
// Reads and writes the messages that carry tensor bytes (their field `chunk`
// has a field `data`) without passing those bytes through protobuf: on the way
// out they are lent to gRPC where they lie, on the way in they stay in the
// slices that gRPC received. The wire is plain protobuf, so any other
// implementation can speak it.
//
// Not here: what a frame means (proto/README.md); positions and windows
// (clients/cpp/session_client, service/session/).

#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"

namespace planewise {

// A message apart from its tensor bytes. Frame is ClientFrame, ServerFrame or
// ReadWeightsResponse.
template <typename Frame>
struct SplitFrame {
  Frame header;                   // chunk.data is empty
  std::vector<grpc::Slice> data;  // chunk.data in order; owns a share of the received memory
};

// Splits any encoding that protobuf itself accepts. What our codec and protobuf's own
// serializer write is split without a copy; stranger encodings (other fields
// beside the chunk, a chunk in several parts) may cost one.
// INVALID_ARGUMENT / PROTOCOL_VIOLATION for bytes that are not a Frame.
template <typename Frame>
absl::StatusOr<SplitFrame<Frame>> Split(const grpc::ByteBuffer& bytes);

// The encoding of `header` with `data` as chunk.data; the same bytes as
// protobuf's serializer writes. `data` is shared, not copied. `header` has an
// empty chunk.data, and a chunk unless `data` is empty.
template <typename Frame>
grpc::ByteBuffer MakeFrame(const Frame& header, const grpc::Slice& data = grpc::Slice());

// A slice over memory of the caller, which must stay unchanged until `returned`
// runs: once, on any thread, when gRPC needs the memory no more.
grpc::Slice LendSlice(absl::string_view memory, absl::AnyInvocable<void() &&> returned);

}  // namespace planewise

#endif  // PLANEWISE_PROTO_FRAME_FRAME_CODEC_H_
