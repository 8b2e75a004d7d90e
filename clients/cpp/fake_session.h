#ifndef PLANEWISE_CLIENTS_CPP_FAKE_SESSION_H_
#define PLANEWISE_CLIENTS_CPP_FAKE_SESSION_H_
// One session of a naive daemon, for tests of the client: keeps everything,
// counts every execution, and computes results by a formula that tests know.
// It follows proto/README.md to the letter and is strict about what it receives.
//
// Not here: gRPC (fake_server.h), numerics: a "gradient" is bytes, not a gradient.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "planewise/v1/session.pb.h"

namespace planewise {

// One thread. Layers are square: a result tensor is as wide as its input.
class FakeSession {
 public:
  struct Options {
    uint64_t session_id = 7;
    int64_t input_window_bytes = 64;
    int64_t chunk_bytes_max = 16;
    int64_t timeout_ms = 600'000;
  };
  struct Frame {
    v1::ServerFrame header;
    std::string data;
  };

  explicit FakeSession(Options options) : options_(options) {}

  // Operation `id` fails with `status` as soon as its header came, instead of executing.
  void FailOperation(uint64_t id, absl::Status status) { failures_[id] = std::move(status); }

  // A new stream: its first frame must be `open`.
  void OnStream();
  // Not OK: the frame breaks the protocol, and the stream is to end with this.
  absl::Status OnFrame(const v1::ClientFrame& frame, absl::string_view data);
  std::optional<Frame> NextFrame();

  // What has happened.
  bool exists() const { return exists_; }
  bool closed() const { return closed_; }
  uint64_t executed_through() const { return executed_through_; }
  uint64_t acknowledged_through() const { return acknowledged_through_; }

  // The result bytes of an operation with these inputs.
  static std::string ResultBytes(const v1::Operation& operation, absl::string_view inputs);

 private:
  struct Result {
    v1::OperationResult header;
    std::string bytes;
  };

  absl::Status OnOpen(const v1::OpenSession& open);
  absl::Status OnOperation(const v1::Operation& operation);
  absl::Status OnChunk(uint64_t position, absl::string_view data);
  absl::Status OnAcknowledge(const v1::Acknowledge& acknowledge);
  void ExecuteWhatIsComplete();
  Result Execute(const v1::Operation& operation);
  std::optional<uint64_t> InputEnd(const v1::Operation& operation) const;
  uint64_t InputLimit() const;

  const Options options_;
  std::map<uint64_t, absl::Status> failures_;
  bool exists_ = false;
  bool closed_ = false;
  bool stream_open_ = false;

  std::map<uint64_t, v1::Operation> operations_;  // not executed yet
  std::string inputs_;                            // every byte, from position 0
  uint64_t inputs_used_ = 0;
  uint64_t input_limit_sent_ = 0;
  uint64_t executed_through_ = 0;
  uint64_t acknowledged_through_ = 0;

  std::map<uint64_t, Result> results_;  // not acknowledged yet
  uint64_t results_end_ = 0;
  uint64_t result_limit_ = 0;
  bool opened_due_ = false;
  bool resumed_ = false;
  bool ended_due_ = false;
  uint64_t send_id_ = 1;
  bool header_sent_ = false;
  uint64_t sent_bytes_ = 0;  // of the result at send_id_
};

}  // namespace planewise

#endif  // PLANEWISE_CLIENTS_CPP_FAKE_SESSION_H_
