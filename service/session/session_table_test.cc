#include "service/session/session_table.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/status/status_codec.h"
#include "service/compute/fake_linear_compute.h"
#include "service/compute/linear_executor.h"
#include "service/weights/fake_lease_source.h"
#include "tests/testing/integer_model.h"
#include "tests/testing/sim_background_runner.h"
#include "tests/testing/sim_clock.h"
#include "tests/testing/sim_executor.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kTokens = 2;
constexpr int64_t kOut = 4;
constexpr int64_t kIn = 8;
constexpr int64_t kInputBytes = kTokens * kIn * 4;
constexpr int64_t kOutputBytes = kTokens * kOut * 4;

const Principal kPrincipal{"unix:1000"};

absl::Span<const std::byte> BytesOf(const std::vector<float>& values) {
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

v1::TensorSpec Spec(int64_t rows, int64_t columns) {
  v1::TensorSpec spec;
  spec.set_data_type(v1::DATA_TYPE_F32);
  spec.add_shape(rows);
  spec.add_shape(columns);
  return spec;
}

v1::ClientFrame OpenFrame(uint64_t result_limit = 1 << 20) {
  v1::ClientFrame frame;
  frame.mutable_open()->set_client_api_version("1.0");
  frame.mutable_open()->set_result_limit(result_limit);
  return frame;
}

v1::ClientFrame ResumeFrame(const v1::SessionOpened& opened) {
  v1::ClientFrame frame = OpenFrame();
  frame.mutable_open()->set_session_id(opened.session_id());
  frame.mutable_open()->set_resume_token(opened.resume_token());
  return frame;
}

v1::Operation ForwardOperation(uint64_t id, uint64_t position, uint64_t step = 1) {
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

v1::Operation BackwardOperation(uint64_t id, uint64_t position, uint64_t handle) {
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

class SessionTableTest : public ::testing::Test {
 protected:
  SessionTableTest() {
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
      table_.emplace(SessionResources{&executor_, &clock_, &models_, &compute_, budget_}, limits_,
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

  void Send(StreamId stream, const v1::ClientFrame& frame) { table().OnFrame(stream, frame, {}); }

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
      table().OnFrame(stream, frame, piece);
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

TEST_F(SessionTableTest, ForwardAndBackwardOnAStream) {
  const StreamId stream = OpenSession();
  Received received = Drain(stream);
  ASSERT_TRUE(received.opened.has_value());
  EXPECT_FALSE(received.opened->resumed());
  EXPECT_EQ(received.opened->input_limit(), uint64_t{4 * kInputBytes});
  EXPECT_TRUE(received.opened->deterministic());

  SendForward(stream, 1, 0);
  received = Drain(stream);
  const v1::OperationResult forward = received.results.at(1);
  ASSERT_EQ(forward.status().code(), 0) << forward.status().message();
  EXPECT_EQ(forward.forward().version(), 1u);
  EXPECT_EQ(forward.forward().saved_bytes(), kInputBytes);
  const std::vector<float> x = IntegerMatrix(kTokens, kIn, 1);
  EXPECT_EQ(received.Values(forward), ExpectedForward(version_->layers[0], x));

  const std::vector<float> dy = IntegerMatrix(kTokens, kOut, 50);
  SendOperation(stream, BackwardOperation(2, kInputBytes, forward.forward().handle()));
  SendBytes(stream, kInputBytes, BytesOf(dy));
  Acknowledge(stream, 1);
  received = Drain(stream);
  const v1::OperationResult backward = received.results.at(2);
  ASSERT_EQ(backward.status().code(), 0) << backward.status().message();
  EXPECT_EQ(received.Values(backward, 0, kTokens * kIn * 4),
            ExpectedInputGradient(version_->layers[0], dy));
  EXPECT_EQ(received.Values(backward, kTokens * kIn * 4, kOut * kIn * 4),
            ExpectedWeightGradient(version_->layers[0], x, dy));
  EXPECT_EQ(received.Values(backward, kTokens * kIn * 4 + kOut * kIn * 4),
            ExpectedBiasGradient(version_->layers[0], dy));

  v1::ClientFrame close;
  close.mutable_close();
  Send(stream, close);
  received = Drain(stream);
  PW_ASSERT_OK(*received.ended);
  EXPECT_EQ(table().session_count(), 0);
  EXPECT_EQ(budget_->used_bytes(), baseline_bytes_);
  EXPECT_EQ(models_.versions("m").lease_count(), 0);
}

TEST_F(SessionTableTest, OperationsRunInTheOrderOfTheirIds) {
  const StreamId stream = OpenSession();
  for (const uint64_t id : {3, 2, 1}) {
    EXPECT_EQ(fake_.forwards_run(), 0);
    SendForward(stream, id, (id - 1) * kInputBytes);
    runner_.RunUntilIdle();
  }
  const Received received = Drain(stream);
  EXPECT_EQ(fake_.forwards_run(), 3);
  for (const uint64_t id : {1, 2, 3}) {
    EXPECT_EQ(received.Values(received.results.at(id)),
              ExpectedForward(version_->layers[0], IntegerMatrix(kTokens, kIn, id)));
    EXPECT_EQ(received.results.at(id).forward().handle(), id);
  }
}

TEST_F(SessionTableTest, ARepeatedIdIsAnsweredAndNotExecuted) {
  const StreamId stream = OpenSession();
  SendForward(stream, 1, 0);
  const Received first = Drain(stream);
  SendForward(stream, 1, 0);
  const Received again = Drain(stream);
  EXPECT_EQ(fake_.forwards_run(), 1);
  EXPECT_EQ(again.results.at(1).SerializeAsString(), first.results.at(1).SerializeAsString());
  EXPECT_EQ(again.bytes, first.bytes);

  Acknowledge(stream, 1);
  SendForward(stream, 1, 0);
  EXPECT_EQ(Drain(stream).result_frames, 0) << "acknowledged: nothing";
  EXPECT_EQ(fake_.forwards_run(), 1);
}

TEST_F(SessionTableTest, AHeaderThatContradictsEndsTheStream) {
  const StreamId stream = OpenSession();
  SendForward(stream, 1, 0);
  Drain(stream);
  SendOperation(stream, ForwardOperation(1, 0, /*step=*/2));
  EXPECT_THAT(*Drain(stream).ended,
              HasReason(Reason::kProtocolViolation, HasSubstr("operation 1 came before")));
  EXPECT_EQ(table().session_count(), 1) << "the session stays";
}

TEST_F(SessionTableTest, AFailedOperationChangesNothing) {
  const StreamId stream = OpenSession();
  v1::Operation wrong = ForwardOperation(1, 0);
  *wrong.mutable_forward()->mutable_input() = Spec(kTokens, kIn + 1);
  SendOperation(stream, wrong);
  Received received = Drain(stream);
  EXPECT_THAT(StatusFromProto(received.results.at(1).status()),
              HasReason(Reason::kShapeMismatch,
                        HasSubstr("layer \"l\" of model \"m\": forward.input.shape is [2, 9], "
                                  "required [..., 8]")));
  EXPECT_EQ(received.results.at(1).result_bytes(), 0);
  EXPECT_EQ(models_.versions("m").lease_count(), 0) << "no pin";
  EXPECT_EQ(budget_->used_bytes(), baseline_bytes_) << "refused before its bytes were needed";

  // The session goes on; the first handle goes to the first success.
  SendForward(stream, 2, kTokens * (kIn + 1) * 4);
  received = Drain(stream);
  EXPECT_EQ(received.results.at(2).forward().handle(), 1u);
}

struct FailureCase {
  std::string name;
  v1::Operation operation;
  Reason reason;
  std::string message;
};

TEST_F(SessionTableTest, OperationsThatCannotRunSayWhy) {
  v1::Operation unknown_model = ForwardOperation(1, 0);
  unknown_model.mutable_forward()->set_model("nope");
  v1::Operation unknown_layer = ForwardOperation(1, 0);
  unknown_layer.mutable_forward()->set_layer("nope");
  v1::Operation bad_override = ForwardOperation(1, 0);
  bad_override.mutable_forward()->set_backward_override(v1::BACKWARD_OVERRIDE_DEQUANTIZED);
  v1::Operation half = ForwardOperation(1, 0);
  half.mutable_forward()->mutable_input()->set_data_type(v1::DATA_TYPE_F16);
  v1::Operation unknown_handle = BackwardOperation(1, 0, 7);
  v1::Operation release;
  release.set_id(1);
  release.mutable_release()->add_handles(1);
  v1::Operation no_kind;
  no_kind.set_id(1);
  v1::Operation resent = BackwardOperation(1, 0, 0);
  v1::ResentInput& input = *resent.mutable_backward()->mutable_input();
  input.set_model("m");
  input.set_layer("no_bias");
  input.set_version(1);
  input.set_backward_override(v1::BACKWARD_OVERRIDE_NONE);
  *input.mutable_input() = Spec(kTokens, kIn);
  v1::Operation old_version = resent;
  old_version.mutable_backward()->mutable_input()->set_version(9);
  const FailureCase kCases[] = {
      {"unknown model", unknown_model, Reason::kNotFound, "model \"nope\""},
      {"unknown layer", unknown_layer, Reason::kNotFound, "no layer \"nope\""},
      {"an override without quantization", bad_override, Reason::kOverrideUnsupportedForRecipe,
       "layer \"l\" of model \"m\""},
      {"a type that the backend lacks", half, Reason::kDtypeUnsupported, "layer \"l\""},
      {"a handle that never existed", unknown_handle, Reason::kUnknownHandle, "handle 7"},
      {"releasing a handle that never existed", release, Reason::kUnknownHandle, "handle 1"},
      {"no kind", no_kind, Reason::kInvalidRequest, "operation.kind"},
      {"a bias gradient without a bias", resent, Reason::kInvalidRequest, "it has no bias"},
      {"a version that is not live", old_version, Reason::kNotFound, "version 9"},
  };
  for (const FailureCase& c : kCases) {
    SCOPED_TRACE(c.name);
    const StreamId stream = OpenSession();
    SendOperation(stream, c.operation);
    const Received received = Drain(stream);
    ASSERT_EQ(received.result_frames, 1);
    EXPECT_THAT(StatusFromProto(received.results.at(1).status()),
                HasReason(c.reason, HasSubstr(c.message)));
    EXPECT_EQ(models_.versions("m").lease_count(), 0);
    v1::ClientFrame close;
    close.mutable_close();
    Send(stream, close);
    Drain(stream);
    EXPECT_EQ(budget_->used_bytes(), baseline_bytes_);
  }
}

TEST_F(SessionTableTest, AFrozenModelGivesNoWeightGradient) {
  auto frozen = std::make_shared<ModelVersion>(*version_);
  frozen->version = WeightVersion(2);
  frozen->trainable = false;
  models_.Publish(frozen);
  const StreamId stream = OpenSession();
  SendOperation(stream, ForwardOperation(1, 0));
  EXPECT_THAT(StatusFromProto(Drain(stream).results.at(1).status()),
              HasReason(Reason::kNotTrainable, HasSubstr("trainable=false")));
}

TEST_F(SessionTableTest, AHandleIsConsumedByTheFirstBackwardThatSucceeds) {
  const StreamId stream = OpenSession();
  SendForward(stream, 1, 0);
  Drain(stream);
  Acknowledge(stream, 1);
  uint64_t position = kInputBytes;
  const auto dy = IntegerMatrix(kTokens, kOut, 9);
  // A backward that fails leaves the handle.
  v1::Operation wrong = BackwardOperation(2, position, 1);
  *wrong.mutable_backward()->mutable_output_gradient() = Spec(kTokens + 1, kOut);
  SendOperation(stream, wrong);
  EXPECT_THAT(StatusFromProto(Drain(stream).results.at(2).status()),
              HasReason(Reason::kShapeMismatch, HasSubstr("of 3 tokens")));
  EXPECT_EQ(budget_->used_bytes(MemoryUse::kSavedOperands), kInputBytes);
  position += (kTokens + 1) * kOut * 4;

  SendOperation(stream, BackwardOperation(3, position, 1));
  SendBytes(stream, position, BytesOf(dy));
  Received received = Drain(stream);
  EXPECT_EQ(received.results.at(3).status().code(), 0);
  EXPECT_EQ(budget_->used_bytes(MemoryUse::kSavedOperands), 0);
  Acknowledge(stream, 3);
  position += kOutputBytes;

  SendOperation(stream, BackwardOperation(4, position, 1));
  EXPECT_THAT(StatusFromProto(Drain(stream).results.at(4).status()),
              HasReason(Reason::kOperandEvicted, HasSubstr("handle 1")));
  // Releasing it is no error.
  v1::Operation release;
  release.set_id(5);
  release.set_input_position(position + kOutputBytes);
  release.mutable_release()->add_handles(1);
  SendOperation(stream, release);
  received = Drain(stream);
  EXPECT_EQ(received.results.at(5).status().code(), 0);
  EXPECT_EQ(received.results.at(5).release().freed_bytes(), 0);
}

TEST_F(SessionTableTest, ReleasingFreesTheOperand) {
  const StreamId stream = OpenSession();
  SendForward(stream, 1, 0);
  Drain(stream);
  v1::Operation release;
  release.set_id(2);
  release.set_input_position(kInputBytes);
  release.mutable_release()->add_handles(1);
  release.mutable_release()->add_handles(1);
  SendOperation(stream, release);
  EXPECT_EQ(Drain(stream).results.at(2).release().freed_bytes(), kInputBytes);
  EXPECT_EQ(budget_->used_bytes(MemoryUse::kSavedOperands), 0);
}

TEST_F(SessionTableTest, SavedOperandsAreBounded) {
  limits_.saved_operand_budget_bytes = 2 * kInputBytes;
  const StreamId stream = OpenSession();
  for (uint64_t id = 1; id <= 3; ++id) SendForward(stream, id, (id - 1) * kInputBytes);
  const Received received = Drain(stream);
  EXPECT_EQ(received.results.at(2).status().code(), 0);
  EXPECT_THAT(StatusFromProto(received.results.at(3).status()),
              HasReason(Reason::kQuotaExceeded, HasSubstr("saved_operand_budget_bytes = 128")));
}

// A step stays with its version, the next one takes the newest.
TEST_F(SessionTableTest, AStepIsPinnedToOneVersion) {
  const StreamId stream = OpenSession();
  SendForward(stream, 1, 0, /*step=*/1);
  Drain(stream);
  models_.Publish(MakeIntegerVersion(*budget_, "m", 2, {{"l", kOut, kIn}}));
  SendForward(stream, 2, kInputBytes, /*step=*/1);
  SendForward(stream, 3, 2 * kInputBytes, /*step=*/2);
  Acknowledge(stream, 1);
  Received received = Drain(stream);
  EXPECT_EQ(received.results.at(2).forward().version(), 1u);
  EXPECT_EQ(received.Values(received.results.at(2)),
            ExpectedForward(version_->layers[0], IntegerMatrix(kTokens, kIn, 2)));
  EXPECT_EQ(received.results.at(3).forward().version(), 2u);

  v1::Operation end_step;
  end_step.set_id(4);
  end_step.set_input_position(3 * kInputBytes);
  end_step.mutable_end_step()->set_step(1);
  SendOperation(stream, end_step);
  SendForward(stream, 5, 3 * kInputBytes, /*step=*/1);
  Acknowledge(stream, 3);
  received = Drain(stream);
  EXPECT_EQ(received.results.at(5).forward().version(), 2u) << "the step began again";
}

TEST_F(SessionTableTest, ARevokedStepMustBeginAgainAndLosesItsOperands) {
  const StreamId stream = OpenSession();
  SendForward(stream, 1, 0);
  Drain(stream);
  models_.Publish(MakeIntegerVersion(*budget_, "m", 2, {{"l", kOut, kIn}}));
  models_.versions("m").Revoke(WeightVersion(1));
  EXPECT_EQ(budget_->used_bytes(MemoryUse::kSavedOperands), 0);

  SendForward(stream, 2, kInputBytes);
  SendOperation(stream, BackwardOperation(3, 2 * kInputBytes, 1));
  const Received received = Drain(stream);
  EXPECT_THAT(StatusFromProto(received.results.at(2).status()), HasReason(Reason::kLeaseRevoked));
  EXPECT_THAT(StatusFromProto(received.results.at(3).status()), HasReason(Reason::kOperandEvicted));
}

TEST_F(SessionTableTest, AVersionThatIsRevokedWhileAForwardRunsFailsIt) {
  const StreamId stream = OpenSession();
  SendForward(stream, 1, 0);
  models_.Publish(MakeIntegerVersion(*budget_, "m", 2, {{"l", kOut, kIn}}));
  models_.versions("m").Revoke(WeightVersion(1));
  EXPECT_THAT(StatusFromProto(Drain(stream).results.at(1).status()),
              HasReason(Reason::kLeaseRevoked));
  EXPECT_EQ(budget_->used_bytes(MemoryUse::kSavedOperands), 0);
}

TEST_F(SessionTableTest, OpenStepsAreBounded) {
  limits_.open_steps_max = 1;
  const StreamId stream = OpenSession();
  SendForward(stream, 1, 0, /*step=*/1);
  SendForward(stream, 2, kInputBytes, /*step=*/2);
  EXPECT_THAT(StatusFromProto(Drain(stream).results.at(2).status()),
              HasReason(Reason::kQuotaExceeded, HasSubstr("open_steps_max = 1")));
}

TEST_F(SessionTableTest, AGapFailsWhatWaitsAndTheSessionGoesOn) {
  const StreamId stream = OpenSession();
  Drain(stream);
  SendForward(stream, 2, kInputBytes);
  SendForward(stream, 3, 2 * kInputBytes);
  executor_.RunFor(limits_.gap_timeout - absl::Seconds(1));
  EXPECT_EQ(Drain(stream).result_frames, 0);
  executor_.RunFor(absl::Seconds(1));
  Received received = Drain(stream);
  for (const uint64_t id : {1, 2, 3}) {
    EXPECT_THAT(StatusFromProto(received.results.at(id).status()),
                HasReason(Reason::kOperationGap, HasSubstr("operation 1 did not arrive")));
  }
  EXPECT_EQ(fake_.forwards_run(), 0);
  SendForward(stream, 1, 0);
  EXPECT_THAT(StatusFromProto(Drain(stream).results.at(1).status()),
              HasReason(Reason::kOperationGap))
      << "it came too late: the answer stays";
  SendForward(stream, 4, 3 * kInputBytes);
  EXPECT_EQ(Drain(stream).results.at(4).status().code(), 0);
}

TEST_F(SessionTableTest, AnOperationThatIsStillArrivingIsNoGap) {
  const StreamId stream = OpenSession();
  SendOperation(stream, ForwardOperation(1, 0));
  v1::Operation end_step;
  end_step.set_id(2);
  end_step.set_input_position(kInputBytes);
  end_step.mutable_end_step()->set_step(1);
  SendOperation(stream, end_step);
  const std::vector<float> x = IntegerMatrix(kTokens, kIn, 1);
  for (int64_t i = 0; i < kInputBytes; i += 4) {
    executor_.RunFor(limits_.gap_timeout / 2);
    SendBytes(stream, i, BytesOf(x).subspan(i, 4));
  }
  const Received received = Drain(stream);
  EXPECT_EQ(received.results.at(1).status().code(), 0);
  EXPECT_EQ(received.results.at(2).status().code(), 0);
}

TEST_F(SessionTableTest, AResumedStreamGetsWhatItLacksAndForgetsHalfOperations) {
  const StreamId first = OpenSession();
  SendForward(first, 1, 0);
  const Received before = Drain(first);
  SendForward(first, 2, kInputBytes);
  // 3 is cut off in the middle.
  SendOperation(first, ForwardOperation(3, 2 * kInputBytes));
  SendBytes(first, 2 * kInputBytes, BytesOf(IntegerMatrix(kTokens, kIn, 3)).subspan(0, 10));
  runner_.RunUntilIdle();
  table().RemoveStream(first);
  EXPECT_EQ(budget_->used_bytes(MemoryUse::kTransport), 2 * kOutputBytes);

  const StreamId second = Connect();
  Send(second, ResumeFrame(*before.opened));
  Received after = Drain(second);
  EXPECT_TRUE(after.opened->resumed());
  EXPECT_EQ(after.opened->executed_through(), 2u);
  EXPECT_EQ(after.results.at(1).SerializeAsString(), before.results.at(1).SerializeAsString());
  EXPECT_EQ(after.Values(after.results.at(2)),
            ExpectedForward(version_->layers[0], IntegerMatrix(kTokens, kIn, 2)));
  SendForward(second, 3, 2 * kInputBytes);
  after = Drain(second);
  EXPECT_EQ(after.results.at(3).status().code(), 0);
  EXPECT_EQ(fake_.forwards_run(), 3);
}

TEST_F(SessionTableTest, AnOperationThatRunsWhileTheStreamBreaksIsNotRunAgain) {
  const StreamId first = OpenSession();
  const Received before = Drain(first);
  SendForward(first, 1, 0);  // on the compute lane now
  table().RemoveStream(first);
  const StreamId second = Connect();
  Send(second, ResumeFrame(*before.opened));
  const std::optional<OutgoingFrame> opened = table().NextFrame(second);
  EXPECT_EQ(opened->header.opened().executed_through(), 0u);
  SendForward(second, 1, 0);
  const Received after = Drain(second);
  EXPECT_EQ(fake_.forwards_run(), 1);
  EXPECT_EQ(after.Values(after.results.at(1)),
            ExpectedForward(version_->layers[0], IntegerMatrix(kTokens, kIn, 1)));
}

TEST_F(SessionTableTest, ResumingElsewhereEndsTheOldStream) {
  const StreamId first = OpenSession();
  const Received before = Drain(first);
  const StreamId second = Connect();
  Send(second, ResumeFrame(*before.opened));
  EXPECT_THAT(*Drain(first).ended, HasReason(Reason::kStreamSuperseded));
  EXPECT_TRUE(Drain(second).opened->resumed());
  SendForward(first, 1, 0);
  SendForward(second, 1, 0);
  EXPECT_EQ(Drain(second).results.at(1).status().code(), 0);
}

TEST_F(SessionTableTest, WhatIsNoOpenIsAViolation) {
  const StreamId stream = Connect();
  SendOperation(stream, ForwardOperation(1, 0));
  EXPECT_THAT(*Drain(stream).ended, HasReason(Reason::kProtocolViolation));
  EXPECT_EQ(table().session_count(), 0);

  const StreamId twice = OpenSession();
  Drain(twice);
  Send(twice, OpenFrame());
  EXPECT_THAT(*Drain(twice).ended,
              HasReason(Reason::kProtocolViolation, HasSubstr("`open` came again")));
  EXPECT_EQ(table().session_count(), 1);
}

TEST_F(SessionTableTest, RefusesStrangersOldClientsAndTooManySessions) {
  const StreamId stream = OpenSession();
  const v1::SessionOpened opened = *Drain(stream).opened;

  v1::ClientFrame wrong_token = ResumeFrame(opened);
  wrong_token.mutable_open()->set_resume_token("guess");
  const StreamId guesser = Connect();
  Send(guesser, wrong_token);
  EXPECT_THAT(*Drain(guesser).ended, HasReason(Reason::kPermissionDenied));

  const StreamId stranger = Connect(Principal{"unix:1001"});
  Send(stranger, ResumeFrame(opened));
  EXPECT_THAT(*Drain(stranger).ended, HasReason(Reason::kPermissionDenied));

  v1::ClientFrame old = OpenFrame();
  old.mutable_open()->set_client_api_version("2.0");
  const StreamId old_client = Connect();
  Send(old_client, old);
  EXPECT_THAT(*Drain(old_client).ended, HasReason(Reason::kClientTooOld));

  v1::ClientFrame unknown = ResumeFrame(opened);
  unknown.mutable_open()->set_session_id(4711);
  const StreamId lost = Connect();
  Send(lost, unknown);
  EXPECT_THAT(*Drain(lost).ended, HasReason(Reason::kSessionExpired));

  OpenSession();
  OpenSession();
  EXPECT_EQ(table().session_count(), 3);
  EXPECT_THAT(*Drain(OpenSession()).ended,
              HasReason(Reason::kQuotaExceeded, HasSubstr("sessions_max = 3")));

  table().BeginDrain();
  EXPECT_THAT(*Drain(OpenSession()).ended, HasReason(Reason::kDraining));
}

TEST_F(SessionTableTest, ASilentSessionExpires) {
  const StreamId stream = OpenSession();
  const v1::SessionOpened opened = *Drain(stream).opened;
  SendForward(stream, 1, 0);
  Drain(stream);
  executor_.RunFor(limits_.timeout - absl::Seconds(1));
  v1::ClientFrame heartbeat;
  heartbeat.mutable_heartbeat();
  Send(stream, heartbeat);
  executor_.RunFor(limits_.timeout - absl::Seconds(1));
  EXPECT_EQ(table().session_count(), 1);
  executor_.RunFor(absl::Seconds(1));
  EXPECT_EQ(table().session_count(), 0);
  EXPECT_THAT(*Drain(stream).ended, HasReason(Reason::kSessionExpired));
  EXPECT_EQ(budget_->used_bytes(), baseline_bytes_);
  EXPECT_EQ(models_.versions("m").lease_count(), 0);

  const StreamId late = Connect();
  Send(late, ResumeFrame(opened));
  EXPECT_THAT(*Drain(late).ended, HasReason(Reason::kSessionExpired));
}

TEST_F(SessionTableTest, ShutdownTellsEverySession) {
  const StreamId stream = OpenSession();
  Drain(stream);
  SendForward(stream, 1, 0);  // runs
  table().Shutdown();
  EXPECT_THAT(*Drain(stream).ended, HasReason(Reason::kDraining));
  EXPECT_EQ(table().session_count(), 0);
  EXPECT_EQ(budget_->used_bytes(), baseline_bytes_);
}

TEST_F(SessionTableTest, AReaderThatStallsCostsItsWindowsAndOneOperation) {
  const StreamId stream = OpenSession(/*result_limit=*/0);
  Drain(stream);
  uint64_t position = 0;
  for (uint64_t id = 1; id <= 100; ++id) {
    // As a client does: no byte past the limit that it was told.
    SendOperation(stream, ForwardOperation(id, position));
    const std::vector<float> x = IntegerMatrix(kTokens, kIn, id);
    const Received received = Drain(stream);
    EXPECT_TRUE(received.bytes.empty()) << "past the client's limit";
    if (received.input_limit > 0) input_limit_ = received.input_limit;
    const uint64_t room = input_limit_ - std::min(input_limit_, position);
    SendBytes(stream, position, BytesOf(x).subspan(0, std::min<uint64_t>(room, kInputBytes)));
    position += kInputBytes;
    Drain(stream);
    ASSERT_LE(budget_->used_bytes(MemoryUse::kTransport),
              limits_.input_window_bytes + limits_.result_budget_bytes + kInputBytes);
    ASSERT_FALSE(received.ended.has_value());
  }
  EXPECT_EQ(fake_.forwards_run(), 4) << "the result budget holds four results";
}

TEST_F(SessionTableTest, ASlowReaderIsWokenWhenThereIsSomething) {
  const StreamId stream = OpenSession();
  EXPECT_EQ(writable_calls_, 1) << "for `opened`";
  Drain(stream);
  SendForward(stream, 1, 0);
  EXPECT_EQ(writable_calls_, 2) << "for the input window";
  runner_.RunUntilIdle();
  EXPECT_EQ(writable_calls_, 2) << "it did not ask since";
  Drain(stream);
  SendForward(stream, 2, kInputBytes);
  EXPECT_EQ(writable_calls_, 3);
}

TEST_F(SessionTableTest, ControlGoesBeforeBulk) {
  const StreamId stream = OpenSession();
  Drain(stream);
  SendForward(stream, 1, 0);
  SendForward(stream, 2, kInputBytes);
  runner_.RunUntilIdle();
  std::vector<std::string> kinds;
  while (const auto frame = table().NextFrame(stream)) {
    kinds.push_back(frame->header.has_chunk() ? "chunk"
                                              : (frame->header.has_result() ? "result" : "window"));
  }
  EXPECT_THAT(kinds, ElementsAre("window", "result", "result", "chunk", "chunk"));
}

// Unary calls.

class UnarySessionTest : public SessionTableTest {
 protected:
  absl::StatusOr<UnaryResult> Execute(const v1::ExecuteRequest& request) {
    std::optional<absl::StatusOr<UnaryResult>> result;
    table().Execute(kPrincipal, request,
                    [&](absl::StatusOr<UnaryResult> r) { result = std::move(r); });
    EXPECT_FALSE(result.has_value()) << "answered inside the call";
    runner_.RunUntilIdle();
    if (!result.has_value()) return absl::DeadlineExceededError("no answer");
    return *std::move(result);
  }

  v1::ExecuteRequest Request(const v1::Operation& operation, const std::vector<float>& inputs) {
    v1::ExecuteRequest request;
    request.set_session_id(opened_.session_id());
    request.set_resume_token(opened_.resume_token());
    *request.mutable_operation() = operation;
    const auto bytes = BytesOf(inputs);
    request.set_inputs(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return request;
  }

  void Open() {
    v1::OpenSession open;
    open.set_client_api_version("1.0");
    PW_ASSERT_OK_AND_ASSIGN(opened_, table().Open(kPrincipal, open));
  }

  static std::vector<float> Values(const UnaryResult& result) {
    std::vector<std::byte> raw;
    for (const auto& piece : result.bytes) raw.insert(raw.end(), piece.begin(), piece.end());
    std::vector<float> values(raw.size() / sizeof(float));
    std::memcpy(values.data(), raw.data(), raw.size());
    return values;
  }

  v1::SessionOpened opened_;
};

TEST_F(UnarySessionTest, ExecutesAndRepeats) {
  Open();
  const std::vector<float> x = IntegerMatrix(kTokens, kIn, 1);
  const v1::ExecuteRequest request = Request(ForwardOperation(1, 0), x);
  PW_ASSERT_OK_AND_ASSIGN(const UnaryResult first, Execute(request));
  EXPECT_EQ(Values(first), ExpectedForward(version_->layers[0], x));
  PW_ASSERT_OK_AND_ASSIGN(const UnaryResult again, Execute(request));
  EXPECT_EQ(Values(again), Values(first));
  EXPECT_EQ(fake_.forwards_run(), 1);

  v1::ExecuteRequest next = Request(ForwardOperation(2, kInputBytes), x);
  next.set_acknowledge_through(1);
  PW_ASSERT_OK(Execute(next));
  EXPECT_THAT(Execute(request), HasReason(Reason::kProtocolViolation, HasSubstr("acknowledged")));

  v1::HeartbeatRequest heartbeat;
  heartbeat.set_session_id(opened_.session_id());
  heartbeat.set_resume_token(opened_.resume_token());
  PW_EXPECT_OK(table().Heartbeat(kPrincipal, heartbeat));
  v1::CloseRequest close;
  close.set_session_id(opened_.session_id());
  close.set_resume_token(opened_.resume_token());
  PW_ASSERT_OK(table().Close(kPrincipal, close));
  EXPECT_THAT(table().Heartbeat(kPrincipal, heartbeat), HasReason(Reason::kSessionExpired));
  EXPECT_THAT(Execute(next), HasReason(Reason::kSessionExpired));
}

TEST_F(UnarySessionTest, CallsThatComeBackwardsRunInOrder) {
  Open();
  const std::vector<float> x1 = IntegerMatrix(kTokens, kIn, 1);
  const std::vector<float> x2 = IntegerMatrix(kTokens, kIn, 2);
  std::vector<uint64_t> answered;
  const auto note = [&](absl::StatusOr<UnaryResult> result) {
    PW_ASSERT_OK(result);
    answered.push_back(result->result.id());
  };
  table().Execute(kPrincipal, Request(ForwardOperation(2, kInputBytes), x2), note);
  runner_.RunUntilIdle();
  EXPECT_TRUE(answered.empty());
  table().Execute(kPrincipal, Request(ForwardOperation(1, 0), x1), note);
  runner_.RunUntilIdle();
  EXPECT_THAT(answered, ElementsAre(1, 2));
}

TEST_F(UnarySessionTest, RefusesWhatDoesNotAddUp) {
  Open();
  const std::vector<float> x = IntegerMatrix(kTokens, kIn, 1);
  EXPECT_THAT(Execute(Request(ForwardOperation(1, 0), IntegerMatrix(1, kIn, 1))),
              HasReason(Reason::kInvalidRequest, HasSubstr("32 bytes, the operation's tensors "
                                                           "have 64")));
  EXPECT_THAT(Execute(Request(ForwardOperation(1, 0), std::vector<float>(257))),
              HasReason(Reason::kLimitExceeded, HasSubstr("unary_tensor_bytes_max = 1024")));
  EXPECT_THAT(Execute(Request(ForwardOperation(1, 5 * kInputBytes), x)),
              HasReason(Reason::kQuotaExceeded, HasSubstr("input_window_bytes")));
  EXPECT_THAT(Execute(Request(ForwardOperation(0, 0), x)), HasReason(Reason::kProtocolViolation));
  v1::ExecuteRequest wrong_token = Request(ForwardOperation(1, 0), x);
  wrong_token.set_resume_token("guess");
  EXPECT_THAT(Execute(wrong_token), HasReason(Reason::kPermissionDenied));
  v1::OpenSession resume;
  resume.set_client_api_version("1.0");
  resume.set_session_id(opened_.session_id());
  EXPECT_THAT(table().Open(kPrincipal, resume), HasReason(Reason::kInvalidRequest));
  EXPECT_EQ(fake_.forwards_run(), 0);
  PW_EXPECT_OK(Execute(Request(ForwardOperation(1, 0), x))) << "nothing of it stayed";
}

TEST_F(UnarySessionTest, ACallThatWaitsHearsOfTheEnd) {
  Open();
  std::optional<absl::Status> status;
  table().Execute(kPrincipal,
                  Request(ForwardOperation(2, kInputBytes), IntegerMatrix(kTokens, kIn, 2)),
                  [&](absl::StatusOr<UnaryResult> result) { status = result.status(); });
  table().Shutdown();
  runner_.RunUntilIdle();
  EXPECT_THAT(*status, HasReason(Reason::kDraining));
}

}  // namespace
}  // namespace planewise
