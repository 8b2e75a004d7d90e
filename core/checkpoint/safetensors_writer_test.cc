#include "core/checkpoint/safetensors_writer.h"

#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/memory_file_system.h"
#include "core/checkpoint/safetensors_reader.h"
#include "gmock/gmock.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

using testing::HasSubstr;

std::string TextOf(const std::vector<std::byte>& bytes) {
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

TEST(SafetensorsWriterTest, EmptyFileIsReadable) {
  MemoryFileSystem fs;
  PW_ASSERT_OK(WriteSafetensors(fs, "/m", {}));
  const std::string json = R"({"__metadata__":{"format":"pt"}})";
  ASSERT_EQ(json.size() % 8, 0u);
  EXPECT_EQ(fs.Contents("/m"), std::string("\x20\0\0\0\0\0\0\0", 8) + json);
  PW_ASSERT_OK_AND_ASSIGN(const SafetensorsReader reader, SafetensorsReader::Open(fs, "/m"));
  EXPECT_TRUE(reader.header().tensors.empty());
}

TEST(SafetensorsWriterTest, OrdersByDtypeThenNameAndPadsTheHeader) {
  MemoryFileSystem fs;
  const std::string two = "22", four = "4444", one = "1", f8 = "8";
  PW_ASSERT_OK(WriteSafetensors(fs, "/m",
                                {{{"b", DType::kU8, {1}}, BytesOf(one)},
                                 {{"z", DType::kBF16, {1}}, BytesOf(two)},
                                 {{"y", DType::kF8E4M3, {1, 1}}, BytesOf(f8)},
                                 {{"a", DType::kF32, {}}, BytesOf(four)}}));
  const std::string json =
      R"({"__metadata__":{"format":"pt"},)"
      R"("a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},)"
      R"("z":{"dtype":"BF16","shape":[1],"data_offsets":[4,6]},)"
      R"("y":{"dtype":"F8_E4M3","shape":[1,1],"data_offsets":[6,7]},)"
      R"("b":{"dtype":"U8","shape":[1],"data_offsets":[7,8]}})";
  const std::string padded = json + std::string((8 - json.size() % 8) % 8, ' ');
  std::string want(8, '\0');
  want[0] = static_cast<char>(padded.size());
  ASSERT_LT(padded.size(), 512u);
  want[1] = static_cast<char>(padded.size() >> 8);
  EXPECT_EQ(fs.Contents("/m"), want + padded + "44442281");
}

TEST(SafetensorsWriterTest, WhatIsWrittenReadsBack) {
  MemoryFileSystem fs;
  const std::string name = "w\"\\\xc3\xa4#row.payload";
  PW_ASSERT_OK(WriteSafetensors(fs, "/m",
                                {{{name, DType::kU8, {2, 3}}, BytesOf("abcdef")},
                                 {{"none", DType::kF32, {0, 7}}, {}}}));
  PW_ASSERT_OK_AND_ASSIGN(const SafetensorsReader reader, SafetensorsReader::Open(fs, "/m"));
  PW_ASSERT_OK_AND_ASSIGN(const std::vector<std::byte> bytes, reader.ReadWhole(name));
  EXPECT_EQ(TextOf(bytes), "abcdef");
  EXPECT_THAT(reader.ReadWhole("none"), IsOkAndHolds(testing::IsEmpty()));
  EXPECT_THAT(reader.ReadWhole("nope"), HasReason(Reason::kNotFound, HasSubstr("\"nope\"")));
}

struct Refused {
  const char* name;
  std::vector<SafetensorsTensor> tensors;
  Reason reason;
  const char* text;
};

TEST(SafetensorsWriterTest, RefusesWhatOtherReadersWould) {
  const Refused kCases[] = {
      {"empty name", {{"", DType::kU8, {}}}, Reason::kInvalidRequest, "the name is empty"},
      {"control character", {{"a\n", DType::kU8, {}}}, Reason::kInvalidRequest, "control"},
      {"reserved", {{"__metadata__", DType::kU8, {}}}, Reason::kInvalidRequest, "reserved"},
      {"not UTF-8", {{"\xff", DType::kU8, {}}}, Reason::kInvalidRequest, "not UTF-8"},
      {"doubled", {{"a", DType::kU8, {}}, {"a", DType::kF32, {}}}, Reason::kInvalidRequest,
       "written twice"},
      {"negative", {{"a", DType::kU8, {-1}}}, Reason::kInvalidRequest, "negative"},
      {"odd FP4", {{"a", DType::kF4E2M1, {3, 5}}}, Reason::kInvalidRequest, "whole bytes"},
      {"overflow", {{"a", DType::kU8, {int64_t{1} << 40, int64_t{1} << 40}}},
       Reason::kLimitExceeded, "2^63"},
      {"sum overflows",
       {{"a", DType::kU8, {INT64_MAX}}, {"b", DType::kU8, {INT64_MAX}}},
       Reason::kLimitExceeded, "2^63"},
  };
  for (const Refused& test : kCases) {
    SCOPED_TRACE(test.name);
    EXPECT_THAT(PlanSafetensors(test.tensors, {}), HasReason(test.reason, HasSubstr(test.text)));
  }
}

TEST(SafetensorsWriterTest, MissingAndExcessBytesAreRefused) {
  MemoryFileSystem fs;
  PW_ASSERT_OK_AND_ASSIGN(const SafetensorsPlan plan,
                          PlanSafetensors({{"a", DType::kU8, {3}}}, {}));
  PW_ASSERT_OK_AND_ASSIGN(SafetensorsWriter writer, SafetensorsWriter::Create(fs, "/m", plan));
  PW_ASSERT_OK(writer.Append(BytesOf("ab")));
  EXPECT_THAT(writer.Finish(), HasReason(Reason::kInternal, HasSubstr("1 bytes")));
  EXPECT_THAT(writer.Append(BytesOf("cd")), HasReason(Reason::kInternal, HasSubstr("2 bytes")));
  PW_ASSERT_OK(writer.Append(BytesOf("c")));
  PW_EXPECT_OK(writer.Finish());
  EXPECT_THAT(WriteSafetensors(fs, "/n", {{{"a", DType::kU8, {3}}, BytesOf("ab")}}),
              HasReason(Reason::kShapeMismatch, HasSubstr("2 bytes were given")));
}

TEST(SafetensorsReaderTest, RangesAreHeldToTheTensor) {
  MemoryFileSystem fs;
  PW_ASSERT_OK(WriteSafetensors(fs, "/m",
                                {{{"a", DType::kU8, {4}}, BytesOf("abcd")},
                                 {{"b", DType::kU8, {4}}, BytesOf("efgh")}}));
  PW_ASSERT_OK_AND_ASSIGN(const SafetensorsReader reader, SafetensorsReader::Open(fs, "/m"));
  const SafetensorsEntry& a = *reader.Find("a");
  std::string text(2, '?');
  PW_ASSERT_OK(reader.Read(a, 2, MutableBytesOf(text)));
  EXPECT_EQ(text, "cd");
  for (const int64_t offset : {int64_t{-1}, int64_t{3}, int64_t{5}, INT64_MAX}) {
    EXPECT_THAT(reader.Read(a, offset, MutableBytesOf(text)),
                HasReason(Reason::kInvalidCheckpoint, HasSubstr("\"a\" has 4 bytes")));
  }
}

TEST(SafetensorsReaderTest, AFileThatShrinksWhileItIsReadIsRefused) {
  MemoryFileSystem fs;
  PW_ASSERT_OK(WriteSafetensors(fs, "/m", {{{"a", DType::kU8, {4}}, BytesOf("abcd")}}));
  PW_ASSERT_OK_AND_ASSIGN(const SafetensorsReader reader, SafetensorsReader::Open(fs, "/m"));
  std::string bytes = fs.Contents("/m");
  bytes.pop_back();
  fs.SetContents("/m", bytes);
  EXPECT_THAT(reader.ReadWhole("a"),
              HasReason(Reason::kInvalidCheckpoint, HasSubstr("changed while it was read")));
  EXPECT_THAT(SafetensorsReader::Open(fs, "/m"),
              HasReason(Reason::kInvalidCheckpoint, HasSubstr("do not lie in the file's 3")));
}

}  // namespace
}  // namespace planewise
