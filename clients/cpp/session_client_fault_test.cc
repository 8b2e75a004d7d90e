// The session client when frames, streams and daemons fail.
#include <algorithm>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "clients/cpp/session_client.h"
#include "clients/cpp/session_wire.h"
#include "core/base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/status/status_codec.h"
#include "tests/testing/seed.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(SessionClientFaultTest, AnyFrameLostDoubledOrLastLeavesTheResultsTheSame) {
  Wire undisturbed;
  TrainingStep step;
  step.SubmitTo(undisturbed);
  undisturbed.Run();
  ASSERT_GT(undisturbed.frame_count, 40);
  for (const Fate fate : {Fate::kDrop, Fate::kDouble, Fate::kBreakBefore, Fate::kBreakAfter}) {
    for (int64_t victim = 0; victim < undisturbed.frame_count; ++victim) {
      SCOPED_TRACE(testing::Message() << "fate " << static_cast<int>(fate) << ", frame " << victim);
      Wire wire;
      wire.fate = [&](int64_t frame) { return frame == victim ? fate : Fate::kDeliver; };
      TrainingStep again;
      again.SubmitTo(wire);
      wire.Run();
      again.ExpectDone();
      EXPECT_THAT(wire.completed, ElementsAre(1, 2, 3, 4, 5));
      EXPECT_EQ(wire.daemon.executed_through(), 5);
      if (HasFailure()) return;
    }
  }
}

TEST(SessionClientFaultTest, SurvivesAWireThatIsNeverGood) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(testing::Message() << "round " << round);
    SessionClient::Options options = TestOptions();
    options.violations_max = 1000;
    options.retry.give_up_after = absl::Hours(1);
    Wire wire(options);
    wire.fate = [&](int64_t) {
      const uint64_t draw = random() % 100;
      return draw < 3    ? Fate::kDrop
             : draw < 6  ? Fate::kDouble
             : draw < 8  ? Fate::kBreakBefore
             : draw < 10 ? Fate::kBreakAfter
                         : Fate::kDeliver;
    };
    TrainingStep step;
    step.SubmitTo(wire);
    wire.Run(absl::Hours(100));
    step.ExpectDone();
    if (HasFailure()) return;
  }
}

TEST(SessionClientFaultTest, AResumeRepeatsWhatWasNotExecutedFromItsHeader) {
  Wire wire;
  SessionCall first(Forward(1, 4), {8}, {8});
  SessionCall second(Forward(3, 4), {24}, {24});
  wire.Submit(first);
  wire.Submit(second);
  // open, opened, operation 1, chunk, operation 2, chunk 8+16: then it breaks.
  wire.fate = [](int64_t frame) { return frame == 5 ? Fate::kBreakAfter : Fate::kDeliver; };
  wire.Run();
  EXPECT_EQ(first.Received(), first.Expected());
  EXPECT_EQ(second.Received(), second.Expected());
  EXPECT_EQ(wire.client.reconnect_count(), 1);
  const auto resume = std::find(wire.sent.begin(), wire.sent.end(), "resume");
  ASSERT_NE(resume, wire.sent.end());
  EXPECT_EQ(*(resume + 1), "operation 2");
  EXPECT_EQ(*(resume + 2), "chunk 8+16");
}

TEST(SessionClientFaultTest, SilenceCountsAsABrokenStreamAndEachTimeLessEagerly) {
  Wire wire;
  SessionCall call(Forward(3, 4), {24}, {24});
  wire.Submit(call);
  // Deliver the handshake of every stream and nothing else.
  wire.fate = [&](int64_t) {
    return wire.sent.back() == "open" || wire.sent.back() == "resume" ? Fate::kDeliver
                                                                      : Fate::kDrop;
  };
  std::vector<absl::Time> streams;
  for (int64_t seen = 0; streams.size() < 4;) {
    while (wire.Step()) {
    }
    if (wire.client.reconnect_count() > seen) {
      seen = wire.client.reconnect_count();
      streams.push_back(wire.now);
    }
    wire.now = wire.client.next_deadline();
    wire.client.OnTimer(wire.now);
  }
  EXPECT_GE(streams[1] - streams[0], 2 * kSilence);
  EXPECT_GE(streams[2] - streams[1], 4 * kSilence);
  wire.fate = [](int64_t) { return Fate::kDeliver; };
  wire.Run();
  EXPECT_EQ(call.Received(), call.Expected());
}

TEST(SessionClientFaultTest, GivesUpWhenNoStreamCanBeHad) {
  Wire wire;
  SessionCall call(Forward(3, 4), {24}, {24});
  wire.Submit(call);
  wire.fate = [](int64_t) { return Fate::kBreakBefore; };
  wire.Run();
  EXPECT_TRUE(wire.client.ended());
  wire.Step();
  EXPECT_THAT(*call.result, HasReason(Reason::kUnavailable, HasSubstr("reset")));
  EXPECT_LE(wire.now - absl::UnixEpoch(), TestOptions().retry.give_up_after);
}

struct Ending {
  absl::string_view name;
  absl::Status status;
  bool resumes;
};

TEST(SessionClientFaultTest, OnlyReasonsThatCanPassAreResumed) {
  const Ending kEndings[] = {
      {"the daemon closed the stream in good order", absl::OkStatus(), true},
      {"the connection broke", absl::UnavailableError("socket closed"), true},
      {"draining", Error(Reason::kDraining, "draining"), true},
      {"a quota", Error(Reason::kQuotaExceeded, "sessions"), true},
      {"a violation, which a lost frame looks like", Error(Reason::kProtocolViolation, "x"), true},
      {"expired", Error(Reason::kSessionExpired, "expired"), false},
      {"superseded", Error(Reason::kStreamSuperseded, "another stream"), false},
      {"no token", Error(Reason::kUnauthenticated, "no token"), false},
      {"another major", Error(Reason::kClientTooOld, "2.0"), false},
  };
  for (const Ending& ending : kEndings) {
    for (const bool by_frame : {false, true}) {
      if (by_frame && ending.status.ok()) continue;  // `ended` with code 0 is another story.
      SCOPED_TRACE(testing::Message() << ending.name << (by_frame ? ", said by `ended`" : ""));
      Wire wire;
      SessionCall call(Forward(3, 4), {24}, {24});
      wire.Submit(call);
      for (int i = 0; i < 5; ++i) wire.Step();
      ASSERT_TRUE(wire.client.attached());
      if (by_frame) {
        v1::ServerFrame ended;
        *ended.mutable_ended()->mutable_status() = StatusToProto(ending.status);
        wire.client.OnFrame(wire.now, ended, {});
        EXPECT_TRUE(wire.client.wants_stream_dropped());
      }
      wire.Break(ending.status);
      EXPECT_EQ(wire.client.ended(), !ending.resumes);
      wire.Run();
      wire.Step();
      ASSERT_TRUE(call.result.has_value());
      EXPECT_EQ(call.result->ok(), ending.resumes);
      if (!ending.resumes) {
        EXPECT_EQ(call.result->status(), ending.status);
        EXPECT_EQ(wire.client.Submit(wire.now, EndStep(), {}, {}).status(), ending.status);
      }
    }
  }
}

TEST(SessionClientFaultTest, StopsResumingWhenEveryStreamEndsInAViolation) {
  Wire wire;
  SessionCall call(Forward(3, 4), {24}, {24});
  wire.Submit(call);
  for (int i = 0; i < TestOptions().violations_max; ++i) {
    ASSERT_FALSE(wire.client.ended());
    while (!wire.client.WantsStream(wire.now)) wire.now = wire.client.next_deadline();
    while (!wire.client.attached()) wire.Step();
    wire.Break(Error(Reason::kProtocolViolation, "no such frame"));
  }
  wire.Step();
  EXPECT_THAT(*call.result, HasReason(Reason::kProtocolViolation));
}

// A daemon that breaks the protocol ends the session with an error that says
// how, whatever it sends; nothing is written outside the caller's memory.
TEST(SessionClientFaultTest, RefusesFramesThatNoDaemonMaySend) {
  struct Case {
    absl::string_view name;
    std::function<void(v1::ServerFrame&)> fill;
    std::string data;
    absl::string_view message;
  };
  const Case kCases[] = {
      {"a result of an operation never sent",
       [](auto& frame) { frame.mutable_result()->set_id(9); }, "", "operation 9"},
      {"a result of operation 0", [](auto& frame) { frame.mutable_result(); }, "", "operation 0"},
      {"a negative size",
       [](auto& frame) {
         frame.mutable_result()->set_id(1);
         frame.mutable_result()->set_result_bytes(-1);
       },
       "", "-1 bytes"},
      {"a failure with bytes",
       [](auto& frame) {
         frame.mutable_result()->set_id(1);
         frame.mutable_result()->mutable_status()->set_code(9);
         frame.mutable_result()->set_result_bytes(4);
       },
       "", "4 bytes"},
      {"a result of another kind",
       [](auto& frame) {
         frame.mutable_result()->set_id(1);
         frame.mutable_result()->mutable_end_step();
       },
       "", "not of a forward"},
      {"a size that is not the tensors'",
       [](auto& frame) {
         frame.mutable_result()->set_id(1);
         *frame.mutable_result()->mutable_forward()->mutable_output() = Bf16(3, 4);
         frame.mutable_result()->set_result_bytes(23);
       },
       "", "whose tensors have 24"},
      {"a tensor of negative size",
       [](auto& frame) {
         frame.mutable_result()->set_id(1);
         *frame.mutable_result()->mutable_forward()->mutable_output() = Bf16(-3, 4);
       },
       "", "dimension -3"},
      {"a result that begins elsewhere",
       [](auto& frame) {
         frame.mutable_result()->set_id(1);
         *frame.mutable_result()->mutable_forward()->mutable_output() = Bf16(3, 4);
         frame.mutable_result()->set_result_bytes(24);
         frame.mutable_result()->set_result_position(5);
       },
       "", "begins at position 5, required 0"},
      {"a chunk past the limit", [](auto& frame) { frame.mutable_chunk()->set_position(39); }, "xy",
       "crosses the limit 40"},
      {"a chunk at the end of all positions",
       [](auto& frame) { frame.mutable_chunk()->set_position(~uint64_t{0}); }, "xy", "crosses"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(std::string(c.name));
    Wire wire;
    SessionCall call(Forward(3, 4), {24}, {24});
    wire.Submit(call);
    while (!wire.client.attached()) wire.Step();
    v1::ServerFrame frame;
    c.fill(frame);
    const absl::string_view data[] = {c.data};
    wire.client.OnFrame(wire.now, frame, data);
    EXPECT_TRUE(wire.client.ended());
    EXPECT_TRUE(wire.client.wants_stream_dropped());
    wire.Step();
    EXPECT_THAT(*call.result, HasReason(Reason::kInternal, HasSubstr(std::string(c.message))));
    EXPECT_EQ(call.Received(), std::string(24, '\xEE'));
  }
}

TEST(SessionClientFaultTest, RefusesToResumeIntoAnotherSession) {
  struct Case {
    absl::string_view name;
    uint64_t session_id;
    uint64_t executed_through;
    absl::string_view message;
  };
  const Case kCases[] = {
      {"another session", 8, 1, "session 8"},
      {"an operation that it had executed is not any more", 7, 0,
       "through 0, required from 1 to 2"},
      {"operations that were never sent", 7, 3, "through 3, required from 1 to 2"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(std::string(c.name));
    Wire wire;
    SessionCall done(EndStep(), {}, {});
    wire.Submit(done);
    wire.Run();
    SessionCall call(Forward(3, 4), {24}, {24});
    wire.Submit(call);
    wire.Break(absl::UnavailableError("reset"));
    wire.client.OnStreamOpened(wire.now);
    v1::ServerFrame frame;
    frame.mutable_opened()->set_session_id(c.session_id);
    frame.mutable_opened()->set_executed_through(c.executed_through);
    frame.mutable_opened()->set_chunk_bytes_max(16);
    frame.mutable_opened()->set_timeout_ms(1000);
    wire.client.OnFrame(wire.now, frame, {});
    EXPECT_THAT(wire.client.end_status(),
                HasReason(Reason::kInternal, HasSubstr(std::string(c.message))));
  }
}

TEST(SessionClientFaultTest, SurvivesFramesOfADaemonGoneMad) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 2000; ++round) {
    Wire wire;
    TrainingStep step;
    step.SubmitTo(wire);
    for (int i = 0; i < 100; ++i) {
      wire.Step();
      v1::ServerFrame frame;
      std::string data(random() % 9, 'x');
      switch (random() % 6) {
        case 0:
          frame.mutable_opened()->set_session_id(7);
          frame.mutable_opened()->set_executed_through(random() % 8);
          frame.mutable_opened()->set_chunk_bytes_max(static_cast<int64_t>(random() % 18) - 1);
          frame.mutable_opened()->set_timeout_ms(random() % 1000);
          break;
        case 1:
          frame.mutable_result()->set_id(random() % 7);
          frame.mutable_result()->mutable_status()->set_code(random() % 3);
          if (random() % 2 == 0) {
            *frame.mutable_result()->mutable_forward()->mutable_output() = Bf16(random() % 4, 4);
            frame.mutable_result()->set_result_bytes(random() % 4 * 8);
          }
          break;
        case 2:
          frame.mutable_chunk()->set_position(random() % 3 == 0 ? random() : random() % 64);
          break;
        case 3:
          frame.mutable_input_window()->set_input_limit(random() % 2 == 0 ? random() : 100);
          break;
        case 4:
          if (random() % 8 == 0) frame.mutable_ended()->mutable_status()->set_code(random() % 20);
          break;
        default:
          wire.now += absl::Milliseconds(random() % 5000);
          wire.client.OnTimer(wire.now);
      }
      const absl::string_view pieces[] = {data};
      wire.client.OnFrame(wire.now, frame, pieces);
    }
    // Whatever it was told, each operation ended at most once and in order.
    wire.Step();
    EXPECT_TRUE(std::is_sorted(wire.completed.begin(), wire.completed.end(), std::less_equal<>()));
  }
}

}  // namespace
}  // namespace planewise
