#include "clients/cli/environment_defaults.h"

#include <map>
#include <string>

#include "gtest/gtest.h"

namespace planewise {
namespace {

struct Case {
  const char* name;
  std::map<std::string, std::string> environment;
  std::optional<BackwardOverride> want;
  std::string error;  // part of the message; empty: no error
};

const Case kCases[] = {
    {"nothing set", {}, std::nullopt, ""},
    {"today's spelling",
     {{"NVTE_BACKWARD_OVERRIDE", "dequantized"}},
     BackwardOverride::kDequantized,
     ""},
    {"none by name", {{"NVTE_BACKWARD_OVERRIDE", "none"}}, BackwardOverride::kNone, ""},
    {"older spelling, default", {{"NVTE_BACKWARD_MODE", "default"}}, BackwardOverride::kNone, ""},
    {"older spelling, unquant",
     {{"NVTE_BACKWARD_MODE", "unquant"}},
     BackwardOverride::kHighPrecision,
     ""},
    {"older spelling, dequant",
     {{"NVTE_BACKWARD_MODE", "dequant"}},
     BackwardOverride::kDequantized,
     ""},
    {"oldest spelling, 1",
     {{"NVTE_KEEP_BACKWARD_UNQUANTIZED", "1"}},
     BackwardOverride::kHighPrecision,
     ""},
    {"oldest spelling, 0",
     {{"NVTE_KEEP_BACKWARD_UNQUANTIZED", "0"}},
     BackwardOverride::kNone,
     ""},
    {"two that agree",
     {{"NVTE_BACKWARD_OVERRIDE", "high_precision"}, {"NVTE_KEEP_BACKWARD_UNQUANTIZED", "1"}},
     BackwardOverride::kHighPrecision,
     ""},
    {"two that disagree",
     {{"NVTE_BACKWARD_OVERRIDE", "dequantized"}, {"NVTE_BACKWARD_MODE", "unquant"}},
     std::nullopt,
     "NVTE_BACKWARD_OVERRIDE means dequantized, NVTE_BACKWARD_MODE means high_precision"},
    {"a spelling of another variable",
     {{"NVTE_BACKWARD_OVERRIDE", "dequant"}},
     std::nullopt,
     "valid: none, high_precision, dequantized"},
    {"empty is not unset", {{"NVTE_BACKWARD_MODE", ""}}, std::nullopt, "NVTE_BACKWARD_MODE=\"\""},
    {"only 0 and 1",
     {{"NVTE_KEEP_BACKWARD_UNQUANTIZED", "true"}},
     std::nullopt,
     "valid: 1, 0"},
};

TEST(EnvironmentDefaultsTest, ReadsEverySpelling) {
  for (const Case& test : kCases) {
    SCOPED_TRACE(test.name);
    const auto found = OverrideFromEnvironment([&](const char* name) -> const char* {
      const auto variable = test.environment.find(name);
      return variable == test.environment.end() ? nullptr : variable->second.c_str();
    });
    if (!test.error.empty()) {
      ASSERT_FALSE(found.ok());
      EXPECT_NE(std::string(found.status().message()).find(test.error), std::string::npos)
          << found.status();
      continue;
    }
    ASSERT_TRUE(found.ok()) << found.status();
    ASSERT_EQ(found->has_value(), test.want.has_value());
    if (test.want.has_value()) {
      EXPECT_EQ((*found)->value, *test.want);
    }
  }
}

}  // namespace
}  // namespace planewise
