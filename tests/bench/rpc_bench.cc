// Throughput of the session stream from the C++ client to the daemon's sessions,
// against a bare stream of ByteBuffers with messages of the same size, and a
// plain TCP connection beside it, all on loopback and in turns within one run.
//
//   bazel run -c opt //tests/bench:rpc_bench [-- --large]
//
// The operation is a forward of a layer with 32 outputs by a compute that only
// copies, so input bytes are what moves. Inputs rotate through memory that no
// cache holds. --large adds 4 GiB tensors (16 GiB of memory).
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "clients/cpp/client.h"
#include "clients/cpp/daemon_channel.h"
#include "tests/bench/bare_stream.h"
#include "tests/bench/median.h"
#include "tests/bench/session_host.h"

namespace planewise {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kIn = 4096;
constexpr int64_t kOut = 32;
constexpr int64_t kRowBytes = kIn * 2;  // BF16
constexpr int kInFlight = 2;
constexpr int kRounds = 5;

template <typename T>
T Must(absl::StatusOr<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "%s\n", result.status().ToString().c_str());
    std::exit(1);
  }
  return *std::move(result);
}

// Bytes a second of `total_bytes` in `elapsed`, in GB (10^9).
double Rate(int64_t total_bytes, absl::Duration elapsed) {
  return static_cast<double>(total_bytes) / absl::ToDoubleSeconds(elapsed) / 1e9;
}

// The client side of one session.
class Trainer {
 public:
  explicit Trainer(const std::string& target) {
    Client::Options options = Client::DefaultOptions();
    options.target = target;
    options.token = "bench";
    client_ = Must(Client::Connect(std::move(options)));
    session_ = Must(client_->OpenSession());
  }

  // Sends `count` tensors of `tensor_bytes`, a few in flight.
  void Forward(absl::string_view memory, int64_t tensor_bytes, int64_t count) {
    const int64_t tokens = tensor_bytes / kRowBytes;
    std::vector<std::string> outputs(kInFlight, std::string(tokens * kOut * 2, '\0'));
    std::vector<OperationTicket> tickets;
    int64_t offset = 0;
    for (int64_t i = 0; i < count; ++i) {
      if (i >= kInFlight) Must(tickets[i - kInFlight].result());
      if (offset + tensor_bytes > static_cast<int64_t>(memory.size())) offset = 0;
      v1::Operation operation;
      v1::Forward& forward = *operation.mutable_forward();
      forward.set_model("m");
      forward.set_layer("l");
      forward.set_step(1);
      forward.mutable_input()->set_data_type(v1::DATA_TYPE_BF16);
      forward.mutable_input()->add_shape(tokens);
      forward.mutable_input()->add_shape(kIn);
      tickets.push_back(Must(
          session_->Start(std::move(operation), {memory.substr(offset, tensor_bytes)},
                          {absl::MakeSpan(outputs[i % kInFlight])})));
      offset += tensor_bytes;
    }
    for (const OperationTicket& ticket : tickets) {
      const v1::OperationResult result = Must(ticket.result());
      if (result.status().code() == 0) continue;
      std::fprintf(stderr, "%s\n", result.status().message().c_str());
      std::exit(1);
    }
  }

 private:
  std::unique_ptr<Client> client_;
  std::unique_ptr<ClientSession> session_;
};

// `work` of every connection at once; the time until the last is done.
absl::Duration TimeAll(int connections, const std::function<void(int)>& work) {
  const absl::Time start = absl::Now();
  std::vector<std::thread> threads;
  for (int i = 0; i < connections; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
  return absl::Now() - start;
}

// Field report 100: the rate at 1 GiB stands beside that at 64 MiB.
struct Row {
  int connections;
  int64_t tensor_bytes;
  double tcp;
  double bare;
  double session;
  double ratio;  // median of the rounds' ratios: both halves saw the same machine
};

Row Measure(int connections, int64_t tensor_bytes, int64_t chunk_bytes, absl::string_view memory,
            const std::string& bare_address, const std::string& session_address) {
  const int64_t count = std::max<int64_t>(kInFlight, 1024 * kMiB / tensor_bytes / connections);
  const int64_t bytes = count * tensor_bytes;
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  std::vector<std::unique_ptr<Trainer>> trainers;
  for (int i = 0; i < connections; ++i) {
    channels.push_back(OpenDaemonChannel(bare_address));
    trainers.push_back(std::make_unique<Trainer>(session_address));
  }
  std::vector<double> tcp, bare, session, ratio;
  for (int round = 0; round < kRounds; ++round) {
    tcp.push_back(Rate(bytes, TimeRawTcp(memory, chunk_bytes, bytes)));
    bare.push_back(Rate(bytes * connections, TimeAll(connections, [&](int i) {
                          TimeBareStream(channels[i], memory, chunk_bytes, bytes);
                        })));
    session.push_back(Rate(bytes * connections, TimeAll(connections, [&](int i) {
                             trainers[i]->Forward(memory, tensor_bytes, count);
                           })));
    ratio.push_back(session.back() / bare.back());
  }
  return {connections, tensor_bytes, Median(tcp), Median(bare), Median(session), Median(ratio)};
}

int Run(bool large) {
  const SessionLimits limits;
  BareStreamServer bare;
  SessionHost host("127.0.0.1:0", limits, kOut, kIn);
  const std::string session_address = absl::StrCat("127.0.0.1:", host.port());
  std::vector<int64_t> sizes = {4 * kMiB, 16 * kMiB, 64 * kMiB, 256 * kMiB, 1024 * kMiB};
  if (large) sizes.push_back(4096 * kMiB);
  // Twice the largest tensor, written so that every page is real.
  const std::string memory(2 * sizes.back(), '\x3c');

  std::printf("chunks of %lld KiB, %d operations in flight, median of %d rounds, GB/s\n",
              static_cast<long long>(limits.chunk_bytes_max >> 10), kInFlight, kRounds);
  std::printf("%11s %12s %8s %8s %8s %14s\n", "connections", "tensor MiB", "TCP", "bare",
              "session", "session/bare");
  for (const int connections : {1, 4}) {
    for (const int64_t tensor_bytes : sizes) {
      const Row row = Measure(connections, tensor_bytes, limits.chunk_bytes_max, memory,
                              bare.address(), session_address);
      std::printf("%11d %12lld %8.2f %8.2f %8.2f %14.2f\n", row.connections,
                  static_cast<long long>(row.tensor_bytes / kMiB), row.tcp, row.bare, row.session,
                  row.ratio);
      std::fflush(stdout);
    }
  }
  return 0;
}

}  // namespace
}  // namespace planewise

int main(int argc, char** argv) {
  bool large = false;
  CLI::App app("Times a session's stream against a bare gRPC stream and a TCP connection.",
               "rpc_bench");
  app.add_flag("--large", large, "also 4 GiB tensors; takes 16 GiB of memory");
  CLI11_PARSE(app, argc, argv);
  return planewise::Run(large);
}
