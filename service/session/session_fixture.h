#ifndef PLANEWISE_SERVICE_SESSION_SESSION_FIXTURE_H_
#define PLANEWISE_SERVICE_SESSION_SESSION_FIXTURE_H_
// For tests of sessions: a table of them on a simulated clock, executor and lanes,
// with a compute whose results are exact, and what a client sends and receives.
//
// Not here: the wire, and clients that recover (tests/sim/).

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "gtest/gtest.h"
#include "proto/status/status_codec.h"
#include "service/compute/fake_linear_compute.h"
#include "service/compute/linear_executor.h"
#include "service/session/session_table.h"
#include "service/weights/fake_lease_source.h"
#include "tests/testing/integer_model.h"
#include "tests/testing/sim_background_runner.h"
#include "tests/testing/sim_clock.h"
#include "tests/testing/sim_executor.h"

namespace planewise {

inline constexpr int64_t kTokens = 2;
inline constexpr int64_t kOut = 4;
inline constexpr int64_t kIn = 8;
inline constexpr int64_t kInputBytes = kTokens * kIn * 4;
inline constexpr int64_t kOutputBytes = kTokens * kOut * 4;

inline const Principal kPrincipal{"unix:1000"};

inline absl::Span<const std::byte> BytesOf(const std::vector<float>& values) {
  return {reinterpret_cast<const std::byte*>(values.data()), values.size() * sizeof(float)};
}

// What came on a stream.
struct Received {
  std::optional<v1::SessionOpened> opened;
  std::map<uint64_t, v1::OperationResult> results;  // by id; the last of each
  int result_frames = 0;
  std::map<uint64_t, std::byte> bytes;  // by position
  uint64_t input_limit = 0;
  std::optional<absl::Status> ended;

  std::vector<float> Values(const v1::OperationResult& result, int64_t skip_bytes = 0,
                            int64_t size_bytes = -1) const {
    if (size_bytes < 0) size_bytes = result.result_bytes() - skip_bytes;
    std::vector<std::byte> raw;
    for (int64_t i = 0; i < size_bytes; ++i) {
      raw.push_back(bytes.at(result.result_position() + skip_bytes + i));
    }
    std::vector<float> values(raw.size() / sizeof(float));
    std::memcpy(values.data(), raw.data(), raw.size());
    return values;
  }
};

inline v1::TensorSpec Spec(int64_t rows, int64_t columns) {
  v1::TensorSpec spec;
  spec.set_data_type(v1::DATA_TYPE_F32);
  spec.add_shape(rows);
  spec.add_shape(columns);
  return spec;
}

inline v1::ClientFrame OpenFrame(uint64_t result_limit = 1 << 20) {
  v1::ClientFrame frame;
  frame.mutable_open()->set_client_api_version("1.0");
  frame.mutable_open()->set_result_limit(result_limit);
  return frame;
}

inline v1::ClientFrame ResumeFrame(const v1::SessionOpened& opened) {
  v1::ClientFrame frame = OpenFrame();
  frame.mutable_open()->set_session_id(opened.session_id());
  frame.mutable_open()->set_resume_token(opened.resume_token());
  return frame;
}

inline v1::Operation ForwardOperation(uint64_t id, uint64_t position, uint64_t step = 1) {
  v1::Operation operation;
  operation.set_id(id);
  operation.set_input_position(position);
  v1::Forward& forward = *operation.mutable_forward();
  forward.set_model("m");
  forward.set_layer("l");
  forward.set_step(step);
  *forward.mutable_input() = Spec(kTokens, kIn);
  forward.set_save_for_backward(true);
  forward.set_weight_gradient(true);
  return operation;
}

inline v1::Operation BackwardOperation(uint64_t id, uint64_t position, uint64_t handle) {
  v1::Operation operation;
  operation.set_id(id);
  operation.set_input_position(position);
  v1::Backward& backward = *operation.mutable_backward();
  backward.set_handle(handle);
  *backward.mutable_output_gradient() = Spec(kTokens, kOut);
  backward.set_input_gradient(true);
  backward.set_weight_gradient(true);
  backward.set_bias_gradient(true);
  return operation;
}

class SessionFixture : public ::testing::Test {
 protected:
  SessionFixture() {
    limits_.input_window_bytes = 4 * kInputBytes;
    limits_.result_budget_bytes = 4 * kOutputBytes;
    limits_.chunk_bytes_max = 48;
    limits_.unary_tensor_bytes_max = 1024;
    limits_.sessions_max = 3;
    models_.Publish(version_);
    baseline_bytes_ = budget_->used_bytes();
  }

  SessionTable& table() {
    if (!table_.has_value()) {
      table_.emplace(
          SessionResources{&executor_, &clock_, &runner_, &models_, &compute_, budget_}, limits_,
          [this] { return ++random_; });
    }
    return *table_;
  }

  StreamId Connect(Principal principal = kPrincipal) {
    return table().AddStream(std::move(principal), [this] { ++writable_calls_; });
  }

  // A stream with a new session on it.
  StreamId OpenSession(uint64_t result_limit = 1 << 20) {
    const StreamId stream = Connect();
    Send(stream, OpenFrame(result_limit));
    return stream;
  }

  void Send(StreamId stream, const v1::ClientFrame& frame) {
    table().OnFrame(stream, frame, {}, nullptr);
  }

  void SendOperation(StreamId stream, const v1::Operation& operation) {
    v1::ClientFrame frame;
    *frame.mutable_operation() = operation;
    Send(stream, frame);
  }

  void SendBytes(StreamId stream, uint64_t position, absl::Span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const auto size = std::min<size_t>(bytes.size(), limits_.chunk_bytes_max);
      v1::ClientFrame frame;
      frame.mutable_chunk()->set_position(position);
      const absl::Span<const std::byte> piece[] = {bytes.subspan(0, size)};
      table().OnFrame(stream, frame, piece, nullptr);
      bytes.remove_prefix(size);
      position += size;
    }
  }

  // A forward of IntegerMatrix(kTokens, kIn, id).
  void SendForward(StreamId stream, uint64_t id, uint64_t position, uint64_t step = 1) {
    SendOperation(stream, ForwardOperation(id, position, step));
    SendBytes(stream, position, BytesOf(IntegerMatrix(kTokens, kIn, id)));
  }

  void Acknowledge(StreamId stream, uint64_t through, uint64_t result_limit = 1 << 20) {
    v1::ClientFrame frame;
    frame.mutable_acknowledge()->set_through_operation(through);
    frame.mutable_acknowledge()->set_result_limit(result_limit);
    Send(stream, frame);
  }

  // Runs all there is to run, and takes all there is to take.
  Received Drain(StreamId stream) {
    Received received;
    runner_.RunUntilIdle();
    while (std::optional<OutgoingFrame> frame = table().NextFrame(stream)) {
      EXPECT_FALSE(received.ended.has_value()) << "a frame after the last";
      const v1::ServerFrame& header = frame->header;
      if (header.has_opened()) received.opened = header.opened();
      if (header.has_result()) {
        ++received.result_frames;
        received.results[header.result().id()] = header.result();
      }
      if (header.has_input_window()) received.input_limit = header.input_window().input_limit();
      if (header.has_ended()) {
        EXPECT_TRUE(frame->last);
        received.ended = StatusFromProto(header.ended().status());
      }
      for (size_t i = 0; i < frame->size_bytes; ++i) {
        received.bytes[header.chunk().position() + i] = frame->data[i];
      }
      runner_.RunUntilIdle();
    }
    return received;
  }

  SimClock clock_;
  SimExecutor executor_{clock_};
  SimBackgroundRunner runner_{executor_};
  FakeLinearCompute fake_;
  std::shared_ptr<MemoryBudget> budget_ = MemoryBudget::Create(1 << 20);
  LinearExecutor compute_{fake_, runner_, budget_};
  std::shared_ptr<ModelVersion> version_ =
      MakeIntegerVersion(*budget_, "m", 1, {{"l", kOut, kIn}, {"no_bias", kOut, kIn, false}});
  FakeLeaseSource models_{clock_};
  SessionLimits limits_;
  uint64_t random_ = 1000;
  int writable_calls_ = 0;
  int64_t baseline_bytes_ = 0;
  uint64_t input_limit_ = 4 * kInputBytes;
  std::optional<SessionTable> table_;
};

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_SESSION_SESSION_FIXTURE_H_
