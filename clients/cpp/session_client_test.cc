#include "clients/cpp/session_client.h"

#include <string>
#include <vector>

#include "clients/cpp/session_wire.h"
#include "core/base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(SessionClientTest, RunsOperationsInOrderWithinBothWindows) {
  Wire wire;
  SessionCall first(Forward(3, 4), {24}, {24});
  SessionCall second(Forward(3, 4), {24}, {24});
  wire.Submit(first);
  wire.Submit(second);
  wire.Run();
  EXPECT_EQ(first.Received(), first.Expected());
  EXPECT_EQ(second.Received(), second.Expected());
  EXPECT_THAT(wire.completed, ElementsAre(1, 2));
  EXPECT_THAT(wire.sent, ElementsAre("open", "operation 1", "chunk 0+16", "chunk 16+8",
                                     "operation 2", "chunk 24+16", "chunk 40+8",
                                     "acknowledge 1 limit 64", "acknowledge 2 limit 88"));
  EXPECT_EQ(wire.daemon.acknowledged_through(), 2);
}

TEST(SessionClientTest, TensorsLargerThanEitherWindowGoThrough) {
  Wire wire;
  TrainingStep step;
  step.SubmitTo(wire);
  wire.Run();
  step.ExpectDone();
  EXPECT_EQ(wire.client.reconnect_count(), 0);
}

TEST(SessionClientTest, AFailedOperationLeavesTheOthersAlone) {
  Wire wire;
  wire.daemon.FailOperation(
      2, Error(Reason::kMemoryShortfall, "operation 2: 200 bytes").With("bytesShort", 136));
  TrainingStep step;
  step.SubmitTo(wire);
  wire.Run();
  EXPECT_THAT(*step.large.result, HasReason(Reason::kMemoryShortfall, HasSubstr("200 bytes")));
  EXPECT_EQ(*DetailsOf(step.large.result->status())->Find("bytesShort"), "136");
  EXPECT_EQ(step.backward.Received(), step.backward.Expected());
  // Its inputs end at 224: what the daemon did not want was not sent.
  EXPECT_THAT(wire.sent, testing::Not(testing::Contains("chunk 216+8")));
}

TEST(SessionClientTest, AnOutputOfTheWrongSizeFailsItsOperationAlone) {
  Wire wire;
  SessionCall wrong(Forward(3, 4), {24}, {23});
  SessionCall missing(BackwardOf(1, 3, 4), {24}, {24});
  SessionCall right(Forward(3, 4), {24}, {24});
  for (SessionCall* call : {&wrong, &missing, &right}) wire.Submit(*call);
  wire.Run();
  EXPECT_THAT(*wrong.result, HasReason(Reason::kShapeMismatch,
                                       HasSubstr("23 bytes, required 24 for BF16 [3, 4]")));
  EXPECT_EQ(wrong.Received(), std::string(23, '\xEE'));
  EXPECT_THAT(*missing.result, HasReason(Reason::kShapeMismatch, HasSubstr("required 3")));
  EXPECT_EQ(right.Received(), right.Expected());
}

TEST(SessionClientTest, RefusesInputsOfTheWrongSizes) {
  Wire wire;
  const std::string bytes(23, 'x');
  EXPECT_THAT(
      wire.client.Submit(wire.now, Forward(3, 4), {bytes}, {}),
      HasReason(Reason::kShapeMismatch, HasSubstr("23 bytes, required 24 for BF16 [3, 4]")));
  EXPECT_THAT(wire.client.Submit(wire.now, Forward(3, 4), {}, {}),
              HasReason(Reason::kShapeMismatch, HasSubstr("0 input buffers given, required 1")));
  v1::Operation untyped = Forward(3, 4);
  untyped.mutable_forward()->mutable_input()->clear_data_type();
  EXPECT_THAT(wire.client.Submit(wire.now, untyped, {bytes}, {}),
              HasReason(Reason::kDtypeUnsupported));
  EXPECT_THAT(wire.client.Submit(wire.now, Forward(-3, 4), {bytes}, {}),
              HasReason(Reason::kInvalidRequest, HasSubstr("dimension -3")));
}

TEST(SessionClientTest, SendsABoundedNumberOfOperationsAhead) {
  Wire wire;
  std::vector<SessionCall> calls;
  for (int i = 0; i < 3000; ++i)
    calls.emplace_back(EndStep(), std::vector<size_t>{}, std::vector<size_t>{});
  for (SessionCall& call : calls) wire.Submit(call);
  // Lose every result until nothing more is sent.
  wire.fate = [&](int64_t frame) { return frame > 1 ? Fate::kDrop : Fate::kDeliver; };
  while (wire.Step()) {
  }
  EXPECT_EQ(wire.sent.back(), "operation 1024");
  wire.fate = [](int64_t) { return Fate::kDeliver; };
  wire.Run();
  EXPECT_THAT(wire.completed, SizeIs(3000));
}

TEST(SessionClientTest, AnIdleSessionSendsHeartbeatsThreeTimesInItsTimeout) {
  Wire wire;
  SessionCall call(EndStep(), {}, {});
  wire.Submit(call);
  wire.Run();
  wire.sent.clear();
  const absl::Time begin = wire.now;
  for (int i = 0; i < 6; ++i) {
    wire.now = wire.client.next_deadline();
    while (wire.Step()) {
    }
  }
  EXPECT_THAT(wire.sent, testing::Each("heartbeat"));
  EXPECT_THAT(wire.sent, SizeIs(6));
  EXPECT_EQ(wire.now - begin, absl::Minutes(20));
}

TEST(SessionClientTest, CloseAbandonsWhatIsOutstandingAndTellsTheDaemon) {
  Wire wire;
  SessionCall call(Forward(10, 10), {200}, {200});
  wire.Submit(call);
  for (int i = 0; i < 6; ++i) wire.Step();
  wire.client.Close(wire.now);
  wire.Run();
  EXPECT_THAT(*call.result, HasReason(Reason::kCancelled));
  EXPECT_EQ(wire.sent.back(), "close");
  EXPECT_TRUE(wire.daemon.closed());
  EXPECT_TRUE(wire.client.ended());
  PW_EXPECT_OK(wire.client.end_status());
  EXPECT_THAT(wire.client.Submit(wire.now, EndStep(), {}, {}), HasReason(Reason::kCancelled));
}

TEST(SessionClientTest, CloseDoesNotWaitForADaemonThatNeverAnswers) {
  Wire wire;
  SessionCall call(EndStep(), {}, {});
  wire.Submit(call);
  wire.Run();
  wire.fate = [](int64_t) { return Fate::kDrop; };
  wire.client.Close(wire.now);
  while (wire.Step()) {
  }
  EXPECT_FALSE(wire.client.ended());
  wire.client.OnTimer(wire.now + TestOptions().close_timeout);
  EXPECT_TRUE(wire.client.ended());
}

}  // namespace
}  // namespace planewise
