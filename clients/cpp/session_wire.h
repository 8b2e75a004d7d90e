#ifndef PLANEWISE_CLIENTS_CPP_SESSION_WIRE_H_
#define PLANEWISE_CLIENTS_CPP_SESSION_WIRE_H_
// For tests of the session client: operations with memory of their own, and a wire
// between client and fake daemon that loses, doubles and breaks as the test says.
//
// Not here: gRPC, threads, real time (fake_server.h).

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "clients/cpp/fake_session.h"
#include "clients/cpp/session_client.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace planewise {

inline constexpr absl::Duration kSilence = absl::Seconds(10);

inline v1::TensorSpec Bf16(int64_t tokens, int64_t width) {
  v1::TensorSpec spec;
  spec.add_shape(tokens);
  spec.add_shape(width);
  spec.set_data_type(v1::DATA_TYPE_BF16);
  return spec;
}

inline v1::Operation Forward(int64_t tokens, int64_t width) {
  v1::Operation operation;
  operation.mutable_forward()->set_model("m");
  operation.mutable_forward()->set_step(1);
  *operation.mutable_forward()->mutable_input() = Bf16(tokens, width);
  return operation;
}

inline v1::Operation BackwardOf(uint64_t handle, int64_t tokens, int64_t width) {
  v1::Operation operation;
  operation.mutable_backward()->set_handle(handle);
  *operation.mutable_backward()->mutable_output_gradient() = Bf16(tokens, width);
  operation.mutable_backward()->set_input_gradient(true);
  operation.mutable_backward()->set_weight_gradient(true);
  operation.mutable_backward()->set_bias_gradient(true);
  return operation;
}

inline v1::Operation EndStep() {
  v1::Operation operation;
  operation.mutable_end_step()->set_step(1);
  return operation;
}

inline SessionClient::Options TestOptions() {
  return {.client_name = "test",
          .client_api_version = "1.0",
          .result_window_bytes = 40,
          .silence_timeout = kSilence,
          .retry = {.delay_first = absl::Seconds(1), .delay_max = absl::Seconds(4)}};
}

// An operation with the memory of its caller.
struct SessionCall {
  SessionCall(v1::Operation operation, std::vector<size_t> input_sizes,
              std::vector<size_t> output_sizes)
      : operation(std::move(operation)) {
    for (const size_t size : input_sizes) {
      inputs.emplace_back();
      for (size_t i = 0; i < size; ++i) inputs.back().push_back(static_cast<char>(i * 37 + size));
    }
    for (const size_t size : output_sizes) outputs.emplace_back(size, '\xEE');
  }

  std::string Received() const {
    std::string joined;
    for (const std::string& output : outputs) joined += output;
    return joined;
  }
  std::string Expected() const {
    std::string joined;
    for (const std::string& input : inputs) joined += input;
    v1::Operation numbered = operation;
    numbered.set_id(id.value());
    return FakeSession::ResultBytes(numbered, joined);
  }

  v1::Operation operation;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  OperationId id;
  std::optional<absl::StatusOr<v1::OperationResult>> result;
};

enum class Fate { kDeliver, kDrop, kDouble, kBreakBefore, kBreakAfter };

// A client and a daemon with a wire between them that does with each frame what
// the test says, and time that passes only when nothing else happens.
class Wire {
 public:
  explicit Wire(SessionClient::Options options = TestOptions(),
                FakeSession::Options daemon_options = {})
      : client(std::move(options), [] { return 0.5; }), daemon(daemon_options) {}

  // Frames of both directions are counted together, from 0.
  std::function<Fate(int64_t frame)> fate = [](int64_t) { return Fate::kDeliver; };
  SessionClient client;
  FakeSession daemon;
  absl::Time now = absl::UnixEpoch();
  int64_t frame_count = 0;
  std::vector<std::string> sent;    // every frame of the client, as "kind"
  std::vector<uint64_t> completed;  // ids in the order of their completions

  void Submit(SessionCall& call) {
    std::vector<absl::string_view> inputs(call.inputs.begin(), call.inputs.end());
    std::vector<absl::Span<char>> outputs;
    for (std::string& output : call.outputs) outputs.emplace_back(&output[0], output.size());
    PW_ASSERT_OK_AND_ASSIGN(call.id, client.Submit(now, call.operation, inputs, outputs));
    calls_.push_back(&call);
  }

  // Runs until nothing is left to do but wait longer than `patience`.
  void Run(absl::Duration patience = absl::Hours(1)) {
    const absl::Time end = now + patience;
    while (true) {
      while (Step()) {
      }
      const absl::Time due = client.next_deadline();
      if (due > end || client.ended() || AllDone()) return;
      now = std::max(now, due);
      client.OnTimer(now);
    }
  }

  // Does one thing; false if there was none to do.
  bool Step() {
    Collect();
    if (client.wants_stream_dropped()) {
      Break(absl::CancelledError("dropped by the client"));
      return true;
    }
    if (client.WantsStream(now)) {
      stream_ = true;
      daemon.OnStream();
      client.OnStreamOpened(now);
      return true;
    }
    if (!stream_) return false;
    if (const auto next = client.NextFrame(now)) {
      sent.push_back(Describe(*next));
      Carry([&] {
        const absl::Status status = daemon.OnFrame(next->frame, next->data);
        if (!status.ok()) Break(status);
      });
      return true;
    }
    if (const auto next = daemon.NextFrame()) {
      const absl::string_view whole = next->data;
      const absl::string_view pieces[] = {whole.substr(0, whole.size() / 3),
                                          whole.substr(whole.size() / 3)};
      Carry([&] { client.OnFrame(now, next->header, pieces); });
      return true;
    }
    return false;
  }

  void Break(const absl::Status& status) {
    if (!stream_) return;
    stream_ = false;
    client.OnStreamBroken(now, status);
  }

  bool AllDone() const {
    return completed.size() == calls_.size() && !client.wants_stream_dropped();
  }

 private:
  // A frame meets its fate; `deliver` takes it to the other side.
  void Carry(const std::function<void()>& deliver) {
    const Fate fate_now = fate(frame_count++);
    if (fate_now == Fate::kBreakBefore) Break(absl::UnavailableError("reset"));
    if (fate_now != Fate::kDrop && stream_) deliver();
    if (fate_now == Fate::kDouble && stream_) deliver();
    if (fate_now == Fate::kBreakAfter) Break(absl::UnavailableError("reset"));
  }

  static std::string Describe(const SessionClient::OutgoingFrame& next) {
    const v1::ClientFrame& frame = next.frame;
    if (frame.has_open()) return frame.open().session_id() == 0 ? "open" : "resume";
    if (frame.has_operation()) return absl::StrCat("operation ", frame.operation().id());
    if (frame.has_chunk()) {
      return absl::StrCat("chunk ", frame.chunk().position(), "+", next.data.size());
    }
    if (frame.has_acknowledge()) {
      return absl::StrCat("acknowledge ", frame.acknowledge().through_operation(), " limit ",
                          frame.acknowledge().result_limit());
    }
    return frame.has_heartbeat() ? "heartbeat" : "close";
  }

  void Collect() {
    for (SessionClient::Completion& completion : client.TakeCompletions()) {
      completed.push_back(completion.id.value());
      for (SessionCall* call : calls_) {
        if (call->id == completion.id) call->result = std::move(completion.result);
      }
    }
  }

  bool stream_ = false;
  std::vector<SessionCall*> calls_;
};

// A step of training: every kind of operation, inputs larger than the window,
// results larger than theirs.
struct TrainingStep {
  SessionCall forward{Forward(3, 4), {24}, {24}};
  SessionCall large{Forward(10, 10), {200}, {200}};
  SessionCall empty{Forward(0, 4), {0}, {0}};
  SessionCall backward{BackwardOf(1, 3, 4), {24}, {24, 64, 16}};
  SessionCall end_step{EndStep(), {}, {}};

  std::vector<SessionCall*> calls() { return {&forward, &large, &empty, &backward, &end_step}; }

  void SubmitTo(Wire& wire) {
    for (SessionCall* call : calls()) wire.Submit(*call);
  }
  void ExpectDone() {
    for (SessionCall* call : calls()) {
      SCOPED_TRACE(testing::Message() << "operation " << call->id.value());
      ASSERT_TRUE(call->result.has_value());
      PW_ASSERT_OK(*call->result);
      EXPECT_TRUE(call->Received() == call->Expected());
    }
  }
};

}  // namespace planewise

#endif  // PLANEWISE_CLIENTS_CPP_SESSION_WIRE_H_
