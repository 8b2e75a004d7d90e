#include "clients/cpp/session_client.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "clients/cpp/fake_session.h"
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
using ::testing::SizeIs;

constexpr absl::Duration kSilence = absl::Seconds(10);

v1::TensorSpec Bf16(int64_t tokens, int64_t width) {
  v1::TensorSpec spec;
  spec.add_shape(tokens);
  spec.add_shape(width);
  spec.set_data_type(v1::DATA_TYPE_BF16);
  return spec;
}

v1::Operation Forward(int64_t tokens, int64_t width) {
  v1::Operation operation;
  operation.mutable_forward()->set_model("m");
  operation.mutable_forward()->set_step(1);
  *operation.mutable_forward()->mutable_input() = Bf16(tokens, width);
  return operation;
}

v1::Operation BackwardOf(uint64_t handle, int64_t tokens, int64_t width) {
  v1::Operation operation;
  operation.mutable_backward()->set_handle(handle);
  *operation.mutable_backward()->mutable_output_gradient() = Bf16(tokens, width);
  operation.mutable_backward()->set_input_gradient(true);
  operation.mutable_backward()->set_weight_gradient(true);
  operation.mutable_backward()->set_bias_gradient(true);
  return operation;
}

v1::Operation EndStep() {
  v1::Operation operation;
  operation.mutable_end_step()->set_step(1);
  return operation;
}

SessionClient::Options TestOptions() {
  return {.client_name = "test",
          .client_api_version = "1.0",
          .result_window_bytes = 40,
          .silence_timeout = kSilence,
          .retry = {.delay_first = absl::Seconds(1), .delay_max = absl::Seconds(4)}};
}

// An operation with the memory of its caller.
struct Call {
  Call(v1::Operation operation, std::vector<size_t> input_sizes, std::vector<size_t> output_sizes)
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

  void Submit(Call& call) {
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
      for (Call* call : calls_) {
        if (call->id == completion.id) call->result = std::move(completion.result);
      }
    }
  }

  bool stream_ = false;
  std::vector<Call*> calls_;
};

// A step of training: every kind of operation, inputs larger than the window,
// results larger than theirs.
struct TrainingStep {
  Call forward{Forward(3, 4), {24}, {24}};
  Call large{Forward(10, 10), {200}, {200}};
  Call empty{Forward(0, 4), {0}, {0}};
  Call backward{BackwardOf(1, 3, 4), {24}, {24, 64, 16}};
  Call end_step{EndStep(), {}, {}};

  std::vector<Call*> calls() { return {&forward, &large, &empty, &backward, &end_step}; }

  void SubmitTo(Wire& wire) {
    for (Call* call : calls()) wire.Submit(*call);
  }
  void ExpectDone() {
    for (Call* call : calls()) {
      SCOPED_TRACE(testing::Message() << "operation " << call->id.value());
      ASSERT_TRUE(call->result.has_value());
      PW_ASSERT_OK(*call->result);
      EXPECT_TRUE(call->Received() == call->Expected());
    }
  }
};

TEST(SessionClientTest, RunsOperationsInOrderWithinBothWindows) {
  Wire wire;
  Call first(Forward(3, 4), {24}, {24});
  Call second(Forward(3, 4), {24}, {24});
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

TEST(SessionClientTest, AnyFrameLostDoubledOrLastLeavesTheResultsTheSame) {
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

TEST(SessionClientTest, SurvivesAWireThatIsNeverGood) {
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

TEST(SessionClientTest, AResumeRepeatsWhatWasNotExecutedFromItsHeader) {
  Wire wire;
  Call first(Forward(1, 4), {8}, {8});
  Call second(Forward(3, 4), {24}, {24});
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
  Call wrong(Forward(3, 4), {24}, {23});
  Call missing(BackwardOf(1, 3, 4), {24}, {24});
  Call right(Forward(3, 4), {24}, {24});
  for (Call* call : {&wrong, &missing, &right}) wire.Submit(*call);
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
  std::vector<Call> calls;
  for (int i = 0; i < 3000; ++i)
    calls.emplace_back(EndStep(), std::vector<size_t>{}, std::vector<size_t>{});
  for (Call& call : calls) wire.Submit(call);
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
  Call call(EndStep(), {}, {});
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

TEST(SessionClientTest, SilenceCountsAsABrokenStreamAndEachTimeLessEagerly) {
  Wire wire;
  Call call(Forward(3, 4), {24}, {24});
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

TEST(SessionClientTest, GivesUpWhenNoStreamCanBeHad) {
  Wire wire;
  Call call(Forward(3, 4), {24}, {24});
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

TEST(SessionClientTest, OnlyReasonsThatCanPassAreResumed) {
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
      Call call(Forward(3, 4), {24}, {24});
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

TEST(SessionClientTest, StopsResumingWhenEveryStreamEndsInAViolation) {
  Wire wire;
  Call call(Forward(3, 4), {24}, {24});
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

TEST(SessionClientTest, CloseAbandonsWhatIsOutstandingAndTellsTheDaemon) {
  Wire wire;
  Call call(Forward(10, 10), {200}, {200});
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
  Call call(EndStep(), {}, {});
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

// A daemon that breaks the protocol ends the session with an error that says
// how, whatever it sends; nothing is written outside the caller's memory.
TEST(SessionClientTest, RefusesFramesThatNoDaemonMaySend) {
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
      {"a result that begins elsewhere",
       [](auto& frame) {
         frame.mutable_result()->set_id(1);
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
    Call call(Forward(3, 4), {24}, {24});
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

TEST(SessionClientTest, RefusesToResumeIntoAnotherSession) {
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
    Call done(EndStep(), {}, {});
    wire.Submit(done);
    wire.Run();
    Call call(Forward(3, 4), {24}, {24});
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

TEST(SessionClientTest, SurvivesFramesOfADaemonGoneMad) {
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
          frame.mutable_result()->set_result_bytes(random() % 30);
          frame.mutable_result()->mutable_status()->set_code(random() % 3);
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
