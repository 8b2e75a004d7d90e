// Every frame of a script, in both directions, lost, doubled, overtaken or held
// back once: the answers are those of a run in which all goes well, and nothing is
// executed twice.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/sim/scripted_client.h"
#include "tests/testing/integer_model.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

// What the script came to, as text.
struct Outcome {
  std::vector<std::string> answers;
  int64_t forwards_run = 0;
  int64_t backwards_run = 0;

  bool operator==(const Outcome&) const = default;
};

std::string Show(const absl::StatusOr<ScriptedClient::Answer>& answer) {
  if (!answer.ok()) return answer.status().ToString();
  std::string text = answer->result.ShortDebugString();
  for (const std::vector<float>& tensor : answer->tensors) {
    for (const float value : tensor) absl::StrAppend(&text, " ", value);
  }
  return text;
}

// Two forwards and their backwards, a handle that is used twice, a release.
Outcome RunScript(ScriptedClient& client) {
  const auto x1 = IntegerMatrix(ScriptedClient::kTokens, ScriptedClient::kIn, 1);
  const auto x2 = IntegerMatrix(ScriptedClient::kTokens, ScriptedClient::kIn, 2);
  const auto dy = IntegerMatrix(ScriptedClient::kTokens, ScriptedClient::kOut, 3);
  Outcome outcome;
  outcome.answers.push_back(Show(client.Forward(x1, true)));
  outcome.answers.push_back(Show(client.Forward(x2, true)));
  outcome.answers.push_back(Show(client.Backward(2, dy)));
  outcome.answers.push_back(Show(client.Backward(1, dy)));
  outcome.answers.push_back(Show(client.Backward(1, dy)));
  outcome.answers.push_back(Show(client.Forward(x1, true)));
  outcome.answers.push_back(Show(client.Release({1, 3})));
  outcome.answers.push_back(Show(client.EndStep(1)));
  outcome.forwards_run = client.compute().forwards_run();
  outcome.backwards_run = client.compute().backwards_run();
  client.Close();
  return outcome;
}

// Frames of each direction in a run in which all goes well.
struct Counts {
  int requests = 0;
  int replies = 0;

  int& of(FrameDirection direction) {
    return direction == FrameDirection::kRequest ? requests : replies;
  }
};

Outcome RunLossless(Counts& counts) {
  ScriptedClient client([&counts](FrameDirection direction) {
    ++counts.of(direction);
    return FrameFate::kDeliver;
  });
  return RunScript(client);
}

TEST(RetryTest, AnyFrameMaySufferAnything) {
  Counts lossless;
  const Outcome expected = RunLossless(lossless);
  EXPECT_EQ(expected.forwards_run, 3);
  EXPECT_EQ(expected.backwards_run, 2);
  EXPECT_GT(lossless.requests, 20) << "operations, their bytes, acknowledgements";
  EXPECT_GT(lossless.replies, 20) << "results, their bytes, windows";

  constexpr struct {
    FrameFate fate;
    const char* name;
  } kFates[] = {{FrameFate::kDrop, "lost"},
                {FrameFate::kDouble, "doubled"},
                {FrameFate::kSwap, "overtaken by the next"},
                {FrameFate::kHold, "held back"}};
  for (const FrameDirection direction : {FrameDirection::kRequest, FrameDirection::kReply}) {
    for (const auto& [fate, name] : kFates) {
      for (int victim = 0; victim < lossless.of(direction); ++victim) {
        SCOPED_TRACE(absl::StrCat(
            direction == FrameDirection::kRequest ? "request " : "reply ", victim, " ", name));
        Counts seen;
        ScriptedClient client([&](FrameDirection frame_direction) {
          const int frame = seen.of(frame_direction)++;
          return frame_direction == direction && frame == victim ? fate : FrameFate::kDeliver;
        });
        const Outcome outcome = RunScript(client);
        ASSERT_EQ(outcome.answers, expected.answers);
        ASSERT_TRUE(outcome == expected) << "something was executed twice";
        ASSERT_GT(seen.of(direction), victim) << "the frame was never sent";
        ASSERT_EQ(client.budget().used_bytes(MemoryUse::kSavedOperands), 0);
      }
    }
  }
}

TEST(RetryTest, TheStreamMayBreakAtAnyReply) {
  Counts lossless;
  const Outcome expected = RunLossless(lossless);
  for (int lost = 0; lost < lossless.replies; ++lost) {
    SCOPED_TRACE(absl::StrCat("reply ", lost, " lost as the stream broke"));
    int reply = 0;
    ScriptedClient* script = nullptr;
    ScriptedClient client([&](FrameDirection direction) {
      if (direction == FrameDirection::kRequest || reply++ != lost) return FrameFate::kDeliver;
      script->BreakStreamNext();
      return FrameFate::kDrop;
    });
    script = &client;
    const Outcome outcome = RunScript(client);
    ASSERT_EQ(outcome.answers, expected.answers);
    ASSERT_TRUE(outcome == expected) << "something was executed twice";
    ASSERT_GT(reply, lost) << "the reply was never sent";
    ASSERT_EQ(client.budget().used_bytes(MemoryUse::kSavedOperands), 0);
  }
}

}  // namespace
}  // namespace planewise
