#include "service/session/session_table.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "service/session/session_fixture.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SessionTableTest : public SessionFixture {};

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

class UnarySessionTest : public SessionFixture {
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
