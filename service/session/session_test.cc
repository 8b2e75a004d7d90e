#include "service/session/session.h"

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "service/session/session_fixture.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

using ::testing::HasSubstr;

class SessionTest : public SessionFixture {};

TEST_F(SessionTest, ForwardAndBackwardOnAStream) {
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

// What a chunk's sender lends is given back as soon as it is copied, and the
// operation waits for that.
TEST_F(SessionTest, LongChunksAreCopiedOnTheTransportLane) {
  limits_.copied_at_once_bytes_max = 16;
  const StreamId stream = OpenSession();
  const Received opened = Drain(stream);
  SendOperation(stream, ForwardOperation(1, 0));
  const std::vector<float> x = IntegerMatrix(kTokens, kIn, 1);
  const absl::Span<const std::byte> bytes = BytesOf(x);
  const auto lent = std::make_shared<int>(0);
  const auto send = [&](uint64_t position, size_t size) {
    v1::ClientFrame frame;
    frame.mutable_chunk()->set_position(position);
    const absl::Span<const std::byte> piece[] = {bytes.subspan(position, size)};
    table().OnFrame(stream, frame, piece, lent);
  };
  static_assert(kInputBytes == 64);
  send(0, 16);
  EXPECT_EQ(lent.use_count(), 1) << "copied at once";
  send(16, 48);
  EXPECT_EQ(lent.use_count(), 2);
  executor_.RunUntilIdle();
  EXPECT_TRUE(runner_.idle(Lane::kCompute)) << "a byte is missing yet";
  ASSERT_TRUE(runner_.RunOne(Lane::kTransport));
  EXPECT_EQ(lent.use_count(), 1);
  const Received received = Drain(stream);
  ASSERT_TRUE(received.results.contains(1));
  EXPECT_EQ(received.Values(received.results.at(1)), ExpectedForward(version_->layers[0], x));

  // A stream that breaks while its bytes are being copied.
  SendOperation(stream, ForwardOperation(2, 64));
  v1::ClientFrame frame;
  frame.mutable_chunk()->set_position(64);
  const absl::Span<const std::byte> piece[] = {bytes.first(48)};
  table().OnFrame(stream, frame, piece, lent);
  EXPECT_EQ(lent.use_count(), 2);
  const int64_t before = budget_->used_bytes(MemoryUse::kTransport);
  table().RemoveStream(stream);
  EXPECT_EQ(budget_->used_bytes(MemoryUse::kTransport), before - kInputBytes);

  // The client resumes and sends everything again before the old copy runs, whose
  // bytes must not get in.
  const StreamId again = Connect();
  Send(again, ResumeFrame(*opened.opened));
  SendOperation(again, ForwardOperation(2, 64));
  const std::vector<float> second = IntegerMatrix(kTokens, kIn, 2);
  SendBytes(again, 64, BytesOf(second));
  const Received resumed = Drain(again);
  EXPECT_EQ(lent.use_count(), 1);
  ASSERT_TRUE(resumed.results.contains(2));
  EXPECT_EQ(resumed.Values(resumed.results.at(2)),
            ExpectedForward(version_->layers[0], second));
}

TEST_F(SessionTest, OperationsRunInTheOrderOfTheirIds) {
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

TEST_F(SessionTest, ARepeatedIdIsAnsweredAndNotExecuted) {
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

TEST_F(SessionTest, AHeaderThatContradictsEndsTheStream) {
  const StreamId stream = OpenSession();
  SendForward(stream, 1, 0);
  Drain(stream);
  SendOperation(stream, ForwardOperation(1, 0, /*step=*/2));
  EXPECT_THAT(*Drain(stream).ended,
              HasReason(Reason::kProtocolViolation, HasSubstr("operation 1 came before")));
  EXPECT_EQ(table().session_count(), 1) << "the session stays";
}

TEST_F(SessionTest, AFailedOperationChangesNothing) {
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

TEST_F(SessionTest, OperationsThatCannotRunSayWhy) {
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

TEST_F(SessionTest, AFrozenModelGivesNoWeightGradient) {
  auto frozen = std::make_shared<ModelVersion>(*version_);
  frozen->version = WeightVersion(2);
  frozen->trainable = false;
  models_.Publish(frozen);
  const StreamId stream = OpenSession();
  SendOperation(stream, ForwardOperation(1, 0));
  EXPECT_THAT(StatusFromProto(Drain(stream).results.at(1).status()),
              HasReason(Reason::kNotTrainable, HasSubstr("trainable=false")));
}

TEST_F(SessionTest, AHandleIsConsumedByTheFirstBackwardThatSucceeds) {
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

TEST_F(SessionTest, ReleasingFreesTheOperand) {
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

TEST_F(SessionTest, SavedOperandsAreBounded) {
  limits_.saved_operand_budget_bytes = 2 * kInputBytes;
  const StreamId stream = OpenSession();
  for (uint64_t id = 1; id <= 3; ++id) SendForward(stream, id, (id - 1) * kInputBytes);
  const Received received = Drain(stream);
  EXPECT_EQ(received.results.at(2).status().code(), 0);
  EXPECT_THAT(StatusFromProto(received.results.at(3).status()),
              HasReason(Reason::kQuotaExceeded, HasSubstr("saved_operand_budget_bytes = 128")));
}

// A step stays with its version, the next one takes the newest.
TEST_F(SessionTest, AStepIsPinnedToOneVersion) {
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

TEST_F(SessionTest, ARevokedStepMustBeginAgainAndLosesItsOperands) {
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

TEST_F(SessionTest, AVersionThatIsRevokedWhileAForwardRunsFailsIt) {
  const StreamId stream = OpenSession();
  SendForward(stream, 1, 0);
  models_.Publish(MakeIntegerVersion(*budget_, "m", 2, {{"l", kOut, kIn}}));
  models_.versions("m").Revoke(WeightVersion(1));
  EXPECT_THAT(StatusFromProto(Drain(stream).results.at(1).status()),
              HasReason(Reason::kLeaseRevoked));
  EXPECT_EQ(budget_->used_bytes(MemoryUse::kSavedOperands), 0);
}

TEST_F(SessionTest, OpenStepsAreBounded) {
  limits_.open_steps_max = 1;
  const StreamId stream = OpenSession();
  SendForward(stream, 1, 0, /*step=*/1);
  SendForward(stream, 2, kInputBytes, /*step=*/2);
  EXPECT_THAT(StatusFromProto(Drain(stream).results.at(2).status()),
              HasReason(Reason::kQuotaExceeded, HasSubstr("open_steps_max = 1")));
}

TEST_F(SessionTest, AGapFailsWhatWaitsAndTheSessionGoesOn) {
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

TEST_F(SessionTest, AnOperationThatIsStillArrivingIsNoGap) {
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

}  // namespace
}  // namespace planewise
