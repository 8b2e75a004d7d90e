#include "core/checkpoint/hf_index.h"

#include <string>

#include "core/base/error.h"
#include "gmock/gmock.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

TEST(HfIndexTest, MapsTensorsToFiles) {
  EXPECT_THAT(ParseHfIndex("i", R"({"metadata":{"total_size":"not checked"},"weight_map":{
                                   "b":"model-00002-of-00002.safetensors",
                                   "a":"model-00001-of-00002.safetensors",
                                   "c":"mtp.safetensors"}})"),
              IsOkAndHolds(ElementsAre(Pair("a", "model-00001-of-00002.safetensors"),
                                       Pair("b", "model-00002-of-00002.safetensors"),
                                       Pair("c", "mtp.safetensors"))));
}

TEST(HfIndexTest, TakesShardNumbersOfAnyWidth) {
  PW_EXPECT_OK(ParseHfIndex("i", R"({"weight_map":{"a":"m-1-of-000001.safetensors"}})"));
}

struct Case {
  const char* name;
  std::string text;
  const char* problem;
};

std::string MapTo(const std::string& file) {
  return R"({"weight_map":{"a":")" + file + R"("}})";
}

const Case kRefused[] = {
    {"empty", "", "not JSON"},
    {"an array", "[]", "\"weight_map\""},
    {"no map", "{}", "\"weight_map\""},
    {"map is a list", R"({"weight_map":[]})", "\"weight_map\""},
    {"map is empty", R"({"weight_map":{}})", "names no tensor"},
    {"file is a number", R"({"weight_map":{"a":1}})", "not a file name"},
    {"tensor twice",
     R"({"weight_map":{"a":"x.safetensors","a":"y.safetensors"}})", "appears twice"},
    {"map twice", R"({"weight_map":{},"weight_map":{"a":"x.safetensors"}})", "appears twice"},
    {"parent directory", MapTo("../x.safetensors"), "beside the index"},
    {"subdirectory", MapTo("d/x.safetensors"), "beside the index"},
    {"absolute", MapTo("/etc/x.safetensors"), "beside the index"},
    {"drive letter", MapTo("C:x.safetensors"), "beside the index"},
    {"backslash", MapTo(R"(..\\x.safetensors)"), "beside the index"},
    {"share", MapTo(R"(\\\\host\\x.safetensors)"), "beside the index"},
    {"hidden", MapTo(".safetensors"), "beside the index"},
    {"control character", MapTo(R"(a\u0000.safetensors)"), "beside the index"},
    {"another extension", MapTo("x.bin"), "beside the index"},
    {"no name", MapTo(""), "beside the index"},
    {"stale: one shard of two", MapTo("model-00001-of-00002.safetensors"), "1 of the 2 shards"},
    {"shards of two counts",
     R"({"weight_map":{"a":"m-1-of-1.safetensors","b":"m-2-of-2.safetensors"}})",
     "1 of the 2 shards"},
    {"shard numbers from zero",
     R"({"weight_map":{"a":"m-0-of-2.safetensors","b":"m-1-of-2.safetensors"}})",
     "2 of the 2 shards"},
};

TEST(HfIndexTest, RefusesWhatDoesNotAddUp) {
  for (const Case& test : kRefused) {
    SCOPED_TRACE(test.name);
    EXPECT_THAT(ParseHfIndex("i", test.text),
                HasReason(Reason::kInvalidCheckpoint,
                          testing::AllOf(HasSubstr("\"i\": "), HasSubstr(test.problem))));
  }
}

}  // namespace
}  // namespace planewise
