// The table of reasons that users read (proto/README.md) is the one that the
// code uses (core/base/reason.h), row by row and in the same order.
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/base/reason.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace planewise {
namespace {

std::string RetryText(Retry retry) {
  switch (retry) {
    case Retry::kNever:
      return "never";
    case Retry::kSameRequest:
      return "same request";
    case Retry::kRestartStep:
      return "restart step";
  }
  return "";
}

std::string Row(const ReasonFacts& facts) {
  return absl::StrCat("| `", facts.name, "` | ", absl::StatusCodeToString(facts.code), " | ",
                      RetryText(facts.retry), " | ", facts.meaning, " |");
}

TEST(ReasonTableTest, PageAndCodeAreEqual) {
  std::ifstream page("proto/README.md");
  ASSERT_TRUE(page.is_open());
  std::stringstream text;
  text << page.rdbuf();

  std::vector<std::string> written;
  bool in_table = false;
  for (absl::string_view line : absl::StrSplit(text.str(), '\n')) {
    if (absl::StartsWith(line, "| reason | code |")) in_table = true;
    if (line.empty()) in_table = false;
    if (in_table && absl::StartsWith(line, "| `")) written.emplace_back(line);
  }

  std::vector<std::string> expected;
  for (const ReasonFacts& facts : AllReasons()) expected.push_back(Row(facts));
  EXPECT_EQ(written, expected);
}

TEST(ReasonTableTest, NamesFollowErrorInfo) {
  for (const ReasonFacts& facts : AllReasons()) {
    EXPECT_LE(facts.name.size(), 63u) << facts.name;
    EXPECT_THAT(std::string(facts.name), testing::MatchesRegex("[A-Z][A-Z0-9_]+[A-Z0-9]"));
    EXPECT_EQ(ReasonFromName(facts.name), facts.reason);
  }
}

}  // namespace
}  // namespace planewise
