#ifndef PLANEWISE_TESTS_BENCH_BARE_STREAM_H_
#define PLANEWISE_TESTS_BENCH_BARE_STREAM_H_
// What gRPC itself can do: a stream of ByteBuffers that nobody looks into.
//
// Not here: the session stream that is compared with it (rpc_bench.cc).

#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/server.h"

namespace planewise {

// Takes streams of any name on 127.0.0.1, drops what it reads, and ends each
// stream when its client has sent all.
class BareStreamServer {
 public:
  BareStreamServer();
  ~BareStreamServer();

  const std::string& address() const { return address_; }

 private:
  std::unique_ptr<grpc::CallbackGenericService> service_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

// Sends `total_bytes` of `memory`, round and round, in messages of `chunk_bytes`
// on one stream, one write in flight; the time until the server has read all.
absl::Duration TimeBareStream(const std::shared_ptr<grpc::Channel>& channel,
                              absl::string_view memory, int64_t chunk_bytes, int64_t total_bytes);

// The same over a plain loopback connection, without gRPC.
absl::Duration TimeRawTcp(absl::string_view memory, int64_t chunk_bytes, int64_t total_bytes);

}  // namespace planewise

#endif  // PLANEWISE_TESTS_BENCH_BARE_STREAM_H_
