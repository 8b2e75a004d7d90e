#include "core/base/strict_json.h"

#include <string>

#include "core/base/error.h"
#include "gmock/gmock.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(StrictJsonTest, ParsesWhatIsPlain) {
  PW_ASSERT_OK_AND_ASSIGN(const nlohmann::json json,
                          ParseStrictJson(R"( {"a":[1,{"a":"x"}],"b":{"a":null}} )", 3, "f"));
  EXPECT_EQ(json["a"][1]["a"], "x");
}

struct Case {
  const char* name;
  std::string text;
  const char* problem;
};

const Case kRefused[] = {
    {"nothing", "", "not JSON: error at byte 1"},
    {"cut short", "{\"a\":", "not JSON: error at byte 6"},
    {"text behind", "{} {}", "not JSON: error at byte 4"},
    {"a key twice", R"({"a":1,"b":2,"a":3})", "key \"a\" appears twice"},
    {"a key twice, escaped", R"({"a":1,"\u0061":3})", "key \"a\" appears twice"},
    {"a key twice, deep inside", R"([{"x":{"a":1,"a":1}}])", "key \"a\" appears twice"},
    {"nested too deep", "[[[[1]]]]", "nested deeper than 3"},
    {"nested without end", std::string(1'000'000, '['), "nested deeper than 3"},
    {"invalid UTF-8", "[\"\xff\"]", "not JSON"},
    {"NUL", std::string("{}\0{}", 5), "NUL at byte 2"},
    {"byte-order mark", "\xef\xbb\xbf{}", "byte-order mark"},
};

TEST(StrictJsonTest, RefusesWhatReadersDisagreeOn) {
  for (const Case& test : kRefused) {
    SCOPED_TRACE(test.name);
    EXPECT_THAT(ParseStrictJson(test.text, 3, "config.json"),
                HasReason(Reason::kInvalidCheckpoint,
                          AllOf(HasSubstr("config.json: "), HasSubstr(test.problem))));
  }
}

TEST(StrictJsonTest, ALongKeyIsCutInTheMessage) {
  const std::string key(1'000'000, 'k');
  const absl::Status status =
      ParseStrictJson("{\"" + key + "\":1,\"" + key + "\":2}", 3, "f").status();
  EXPECT_THAT(status, HasReason(Reason::kInvalidCheckpoint, HasSubstr("appears twice")));
  EXPECT_LT(status.message().size(), 400u);
}

}  // namespace
}  // namespace planewise
