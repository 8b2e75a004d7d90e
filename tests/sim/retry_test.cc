// Every reply lost once, at every point of a script: the answers are those of a
// run without losses, and nothing is executed twice.

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

TEST(RetryTest, AnyReplyMayBeLost) {
  int replies = 0;
  ScriptedClient lossless([&replies](const v1::ServerFrame&) {
    ++replies;
    return ReplyFate::kDeliver;
  });
  const Outcome expected = RunScript(lossless);
  EXPECT_EQ(expected.forwards_run, 3);
  EXPECT_EQ(expected.backwards_run, 2);
  EXPECT_GT(replies, 20) << "results, their bytes, windows";

  for (const bool breaks : {false, true}) {
    for (int lost = 0; lost < replies; ++lost) {
      SCOPED_TRACE(absl::StrCat("reply ", lost, breaks ? " lost as the stream broke" : " lost"));
      int reply = 0;
      ScriptedClient* script = nullptr;
      ScriptedClient client([&](const v1::ServerFrame&) {
        if (reply++ != lost) return ReplyFate::kDeliver;
        if (breaks) script->BreakStreamNext();
        return ReplyFate::kDrop;
      });
      script = &client;
      const Outcome outcome = RunScript(client);
      ASSERT_EQ(outcome.answers, expected.answers);
      ASSERT_TRUE(outcome == expected) << "something was executed twice";
      ASSERT_GT(reply, lost) << "the reply was never sent";
      ASSERT_EQ(client.budget().used_bytes(MemoryUse::kSavedOperands), 0);
    }
  }
}

}  // namespace
}  // namespace planewise
