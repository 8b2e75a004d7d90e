#include "core/checkpoint/safetensors_header.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/error.h"
#include "gmock/gmock.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

// The header of a file "m" whose JSON is `json` and that has `data_bytes` more.
absl::StatusOr<SafetensorsHeader> Parse(absl::string_view json, int64_t data_bytes) {
  return ParseSafetensorsHeader("m", 8 + static_cast<int64_t>(json.size()) + data_bytes, json);
}

std::string LittleEndian(uint64_t value) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(value >> (8 * i)));
  return bytes;
}

struct Accepted {
  const char* name;
  std::string json;
  int64_t data_bytes;
  size_t tensor_count;
};

class AcceptedTest : public testing::TestWithParam<Accepted> {};

TEST_P(AcceptedTest, Parses) {
  PW_ASSERT_OK_AND_ASSIGN(const SafetensorsHeader header,
                          Parse(GetParam().json, GetParam().data_bytes));
  EXPECT_EQ(header.tensors.size(), GetParam().tensor_count);
}

const Accepted kAccepted[] = {
    {"nothing at all", "{}", 0, 0},
    {"padded with spaces", "{}      ", 0, 0},
    {"white space around", "\t\n{}\r ", 0, 0},
    {"metadata only", R"({"__metadata__":{"framework":"pt"}}     )", 0, 0},
    {"empty metadata", R"({"__metadata__":{}})", 0, 0},
    {"null metadata", R"({"__metadata__":null})", 0, 0},
    {"scalar", R"({"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})", 4, 1},
    {"zero elements", R"({"a":{"dtype":"F32","shape":[2,0],"data_offsets":[0,0]}})", 0, 1},
    {"zero elements after a huge dimension",
     R"({"a":{"dtype":"F32","shape":[0,9223372036854775807],"data_offsets":[0,0]}})", 0, 1},
    {"two empty tensors at one place",
     R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},)"
     R"("b":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})",
     0, 2},
    {"packed FP4", R"({"a":{"dtype":"F4","shape":[1,2],"data_offsets":[0,1]}})", 1, 1},
    {"keys of an entry in any order",
     R"({"a":{"data_offsets":[0,1],"shape":[1],"dtype":"U8"}})", 1, 1},
    {"unknown keys of an entry are skipped",
     R"({"a":{"x":{"y":[1,{"z":"s"}]},"dtype":"U8","n":1.5,"shape":[1],"m":null,)"
     R"("t":true,"data_offsets":[0,1]}})",
     1, 1},
    {"escaped names", R"({"\u00e4\n":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1, 1},
};

std::string NameOfCase(size_t index) { return absl::StrCat("case_", index); }

INSTANTIATE_TEST_SUITE_P(Headers, AcceptedTest, testing::ValuesIn(kAccepted),
                         [](const auto& info) { return NameOfCase(info.index); });

struct Refused {
  const char* name;
  std::string json;
  int64_t data_bytes;
  const char* text;  // part of the message
};

std::string I32(const char* shape, const char* offsets) {
  return absl::StrCat(R"({"test":{"dtype":"I32","shape":)", shape, R"(,"data_offsets":)", offsets,
                      "}}");
}

std::string Two(const char* first, const char* second) {
  return absl::StrCat(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)", first,
                      R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)", second, "}}");
}

const Refused kRefused[] = {
    {"empty text", "", 0, "does not begin with '{'"},
    {"not UTF-8", "\xff", 0, "does not begin with '{'"},
    {"invalid UTF-8 in a name", "{\"\xff\":1}", 0, "not JSON at byte"},
    {"open brace", "{", 0, "not JSON at byte"},
    {"byte-order mark", "\xef\xbb\xbf{}", 0, "does not begin with '{'"},
    {"array", "[]", 0, "does not begin with '{'"},
    {"two documents", "{}{}", 0, "not JSON at byte"},
    {"padded with NUL", std::string("{}\0\0\0", 5), 0, "NUL at byte 2"},
    {"text after a NUL", std::string("{}\0{\"a\":1}", 10), 0, "NUL at byte 2"},
    {"comment", "{/* */}", 0, "not JSON"},
    {"single quotes", "{'a':1}", 0, "not JSON"},
    {"entry is null", R"({"a":null})", 0, "tensor \"a\": unexpected null"},
    {"entry is a number", R"({"a":1})", 0, "tensor \"a\": unexpected a number"},
    {"entry is an array", R"({"a":[]})", 0, "tensor \"a\": unexpected an array"},
    {"metadata is a string", R"({"__metadata__":"pt"})", 0, "maps strings to strings"},
    {"metadata value is a number", R"({"__metadata__":{"a":1}})", 0, "maps strings to strings"},
    {"metadata value is null", R"({"__metadata__":{"a":null}})", 0, "maps strings to strings"},
    {"metadata value is an object", R"({"__metadata__":{"a":{}}})", 0, "maps strings to strings"},
    {"metadata twice", R"({"__metadata__":{},"__metadata__":{}})", 0, "occurs twice"},
    {"metadata key twice", R"({"__metadata__":{"a":"1","a":"2"}})", 0, "key \"a\" occurs twice"},
    {"dtype missing", R"({"a":{"shape":[1],"data_offsets":[0,1]}})", 1, "are required"},
    {"shape missing", R"({"a":{"dtype":"U8","data_offsets":[0,1]}})", 1, "are required"},
    {"offsets missing", R"({"a":{"dtype":"U8","shape":[1]}})", 1, "are required"},
    {"dtype twice", R"({"a":{"dtype":"U8","dtype":"I8","shape":[1],"data_offsets":[0,1]}})", 1,
     "\"dtype\" occurs twice"},
    {"dtype empty", R"({"a":{"dtype":"","shape":[],"data_offsets":[0,0]}})", 0,
     "dtype \"\" is not known"},
    {"dtype in small letters", R"({"a":{"dtype":"f32","shape":[],"data_offsets":[0,4]}})", 4,
     "dtype \"f32\" is not known"},
    {"negative dimension", I32("[-1]", "[0,4]"), 4, "unexpected a negative number"},
    {"fractional dimension", I32("[1.0]", "[0,4]"), 4, "not a 64-bit integer"},
    {"dimension beyond 64 bits", I32("[18446744073709551616]", "[0,4]"), 4,
     "not a 64-bit integer"},
    {"nested shape", I32("[[1]]", "[0,4]"), 4, "unexpected an array"},
    {"text in a shape", I32("[\"1\"]", "[0,4]"), 4, "unexpected a string"},
    {"one offset", I32("[1]", "[0]"), 4, "must hold two numbers"},
    {"three offsets", I32("[1]", "[0,4,8]"), 8, "more than 2 numbers"},
    {"negative offset", I32("[1]", "[-4,0]"), 4, "unexpected a negative number"},
    {"end before begin", I32("[1]", "[4,0]"), 4, "do not lie in"},
    {"end past the file", I32("[2,2]", "[0,16]"), 14, "do not lie in the file's 14 bytes"},
    {"offsets near 2^64", I32("[1]", "[18446744073709551612,18446744073709551615]"), 4,
     "do not lie in"},
    {"overlap", Two("[0,4]", "[2,6]"), 6, "some overlap"},
    {"overlap of all", Two("[0,4]", "[0,4]"), 8, "holes and overlaps"},
    {"hole at the start", I32("[1]", "[4,8]"), 8, "begins at data byte 4"},
    {"hole in the middle", Two("[0,4]", "[5,9]"), 9, "begins at data byte 5"},
    {"hole at the end", I32("[2,2]", "[0,16]"), 20, "trailing bytes are not allowed"},
    {"a second file behind", I32("[2,2]", "[0,16]"), 50, "trailing bytes are not allowed"},
    {"bytes without tensors", "{}", 1, "trailing bytes are not allowed"},
    {"shorter than the shape", I32("[2,2]", "[0,4]"), 4, "requires 16"},
    {"longer than the shape", I32("[1]", "[0,8]"), 8, "requires 4"},
    {"elements overflow", I32("[2,9223372036854775807]", "[0,16]"), 16, "2^63 - 1"},
    {"dimension over 2^63", I32("[2,18446744073709551614]", "[0,16]"), 16, "exceeds 2^63 - 1"},
    {"elements overflow before a zero", I32("[9223372036854775807,2,0]", "[0,0]"), 0, "2^63 - 1"},
    {"bytes overflow", I32("[4611686018427387904]", "[0,0]"), 0, "2^63 - 1"},
    {"FP4 of an odd count", R"({"a":{"dtype":"F4","shape":[1,3],"data_offsets":[0,2]}})", 2,
     "do not fill whole bytes"},
    {"a name twice",
     R"({"key00":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
     R"("key00":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
     2, "tensor \"key00\": the name occurs twice"},
    {"an empty tensor twice",
     R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},)"
     R"("a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})",
     0, "occurs twice"},
    {"nested without end", R"({"a":{"x":)" + std::string(100'000, '['), 0, "nested deeper"},
    {"nested objects without end",
     R"({"a":{"x":)" +
         absl::StrJoin(std::vector<std::string>(1000, R"({"y":)"), ""),
     0, "nested deeper"},
    {"a number without end", R"({"a":{"dtype":"U8","shape":[)" + std::string(100'000, '9') + "]",
     0, "not JSON at byte"},
    {"too many dimensions",
     absl::StrCat(R"({"a":{"dtype":"U8","shape":[)",
                  absl::StrJoin(std::vector<int>(65, 1), ","), R"(],"data_offsets":[0,1]}})"),
     1, "more than 64 numbers"},
};

class RefusedTest : public testing::TestWithParam<Refused> {};

TEST_P(RefusedTest, NamesFileAndFault) {
  SCOPED_TRACE(GetParam().name);
  const absl::Status status = Parse(GetParam().json, GetParam().data_bytes).status();
  EXPECT_THAT(status, HasReason(Reason::kInvalidCheckpoint,
                                testing::AllOf(HasSubstr("\"m\": "), HasSubstr(GetParam().text))));
  EXPECT_EQ(*DetailsOf(status)->Find("file"), "m");
}

INSTANTIATE_TEST_SUITE_P(Headers, RefusedTest, testing::ValuesIn(kRefused),
                         [](const auto& info) { return NameOfCase(info.index); });

TEST(SafetensorsHeaderTest, SortsByOffsetAndCountsFromTheFile) {
  const std::string json =
      R"({"b":{"dtype":"BF16","shape":[1,2],"data_offsets":[3,7]},)"
      R"("__metadata__":{"format":"pt","k":"v"},)"
      R"("a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})";
  PW_ASSERT_OK_AND_ASSIGN(const SafetensorsHeader header, Parse(json, 7));
  const int64_t data = 8 + static_cast<int64_t>(json.size());
  EXPECT_EQ(header.data_offset, data);
  EXPECT_THAT(header.tensors,
              ElementsAre(SafetensorsEntry{"a", DType::kU8, {3}, data, 3},
                          SafetensorsEntry{"b", DType::kBF16, {1, 2}, data + 3, 4}));
  EXPECT_THAT(header.metadata, ElementsAre(Pair("format", "pt"), Pair("k", "v")));
}

TEST(SafetensorsHeaderTest, ManyTensorsAtOnePlaceEndWithTheSecond) {
  std::string json = "{";
  for (int i = 0; i < 100'000; ++i) {
    absl::StrAppend(&json, i == 0 ? "" : ",", "\"", i,
                    R"(":{"dtype":"U8","shape":[16],"data_offsets":[0,16]})");
  }
  json.push_back('}');
  EXPECT_THAT(Parse(json, 16),
              HasReason(Reason::kInvalidCheckpoint, HasSubstr("tensor \"1\": with it")));
}

TEST(SafetensorsHeaderTest, AVeryLongNameIsCutInTheMessage) {
  const std::string name(1'000'000, 'n');
  const absl::Status status = Parse(absl::StrCat("{\"", name, "\":1}"), 0).status();
  EXPECT_THAT(status, HasReason(Reason::kInvalidCheckpoint, HasSubstr("nnn...\"")));
  EXPECT_LT(status.message().size(), 400u);
}

TEST(SafetensorsHeaderTest, ControlCharactersDoNotReachTheMessage) {
  EXPECT_THAT(Parse(R"({"a\u001b[31m":1})", 0),
              HasReason(Reason::kInvalidCheckpoint, HasSubstr("a\\x1b[31m")));
}

struct LengthCase {
  const char* name;
  int64_t file_bytes;
  std::string field;
  const char* text;
};

const LengthCase kLengths[] = {
    {"empty file", 0, "", "the file has 0 bytes"},
    {"seven bytes", 7, "1234567", "the file has 7 bytes"},
    {"length over the file", 60, LittleEndian(60), "ends at byte 68, the file at 60"},
    {"length at the limit of a short file", 60, LittleEndian(100'000'000), "it is truncated"},
    {"length over the limit", 200'000'000, LittleEndian(100'000'001), "the limit is 100000000"},
    {"length 2^64 - 1", 60, LittleEndian(~uint64_t{0}), "claims 18446744073709551615 bytes"},
    {"length with high bytes set", 60, LittleEndian(0xFFFFFF000000003Cull), "the limit is"},
};

TEST(SafetensorsHeaderTest, RefusesImpossibleLengths) {
  for (const LengthCase& test : kLengths) {
    SCOPED_TRACE(test.name);
    EXPECT_THAT(SafetensorsHeaderLength("m", test.file_bytes, test.field),
                HasReason(Reason::kInvalidCheckpoint, HasSubstr(test.text)));
  }
  EXPECT_THAT(SafetensorsHeaderLength("m", 68, LittleEndian(60)), IsOkAndHolds(60));
}

}  // namespace
}  // namespace planewise
