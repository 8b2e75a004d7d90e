#include "proto/frame/frame_codec.h"

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "planewise/v1/models.pb.h"
#include "planewise/v1/session.pb.h"
#include "tests/testing/seed.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

using ::google::protobuf::util::MessageDifferencer;
using ::testing::HasSubstr;

absl::string_view BytesOf(const grpc::Slice& slice) {
  return absl::string_view(reinterpret_cast<const char*>(slice.begin()), slice.size());
}

std::string Join(const std::vector<grpc::Slice>& slices) {
  std::string joined;
  for (const grpc::Slice& slice : slices) joined.append(BytesOf(slice).data(), slice.size());
  return joined;
}

std::string Join(const grpc::ByteBuffer& bytes) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(bytes.Dump(&slices).ok());
  return Join(slices);
}

// `bytes` in slices of `size` bytes, an empty one between each.
grpc::ByteBuffer InPieces(absl::string_view bytes, size_t size) {
  std::vector<grpc::Slice> slices;
  for (size_t begin = 0; begin < bytes.size(); begin += size) {
    const absl::string_view piece = bytes.substr(begin, size);
    slices.emplace_back(piece.data(), piece.size());
    slices.emplace_back();
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

v1::ClientFrame ChunkAt(uint64_t position) {
  v1::ClientFrame frame;
  frame.mutable_chunk()->set_position(position);
  return frame;
}

template <typename Frame>
Frame Whole(const SplitFrame<Frame>& split) {
  Frame whole = split.header;
  if (!split.data.empty()) whole.mutable_chunk()->set_data(Join(split.data));
  return whole;
}

// Split agrees with protobuf's own parser about `bytes`: in whether they are a
// frame, and in what they say.
template <typename Frame>
void ExpectSplitsAsProtobufParses(const grpc::ByteBuffer& bytes) {
  Frame parsed;
  const bool is_frame = parsed.ParseFromString(Join(bytes));
  const absl::StatusOr<SplitFrame<Frame>> split = Split<Frame>(bytes);
  ASSERT_EQ(split.ok(), is_frame) << split.status() << " for " << absl::CHexEscape(Join(bytes));
  if (!is_frame) {
    EXPECT_THAT(split, HasReason(Reason::kProtocolViolation, HasSubstr(parsed.GetTypeName())));
    return;
  }
  EXPECT_TRUE(split->header.chunk().data().empty());
  EXPECT_TRUE(MessageDifferencer::Equals(Whole(*split), parsed))
      << Whole(*split).ShortDebugString() << "\nis not\n"
      << parsed.ShortDebugString();
}

TEST(FrameCodecTest, WritesTheBytesThatProtobufWrites) {
  for (const size_t size : {0, 1, 127, 128, 16383, 16384, 1 << 21}) {
    for (const uint64_t position : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 40, ~uint64_t{0}}) {
      SCOPED_TRACE(testing::Message() << size << " bytes at " << position);
      const std::string data(size, '\x7A');
      v1::ClientFrame whole = ChunkAt(position);
      whole.mutable_chunk()->set_data(data);
      EXPECT_TRUE(Join(MakeFrame(ChunkAt(position), grpc::Slice(data))) ==
                  whole.SerializeAsString());
    }
  }
  v1::ClientFrame heartbeat;
  heartbeat.mutable_heartbeat();
  EXPECT_EQ(Join(MakeFrame(heartbeat)), heartbeat.SerializeAsString());

  v1::ReadWeightsResponse weights;
  weights.mutable_chunk()->set_offset(3);
  const grpc::ByteBuffer made = MakeFrame(weights, grpc::Slice("abc", 3));
  weights.mutable_chunk()->set_data("abc");
  EXPECT_EQ(Join(made), weights.SerializeAsString());
}

TEST(FrameCodecTest, TensorBytesStayWhereTheyAreInBothDirections) {
  const std::string tensor(1 << 20, 't');
  const grpc::ByteBuffer frame = MakeFrame(ChunkAt(7), LendSlice(tensor, [] {}));
  PW_ASSERT_OK_AND_ASSIGN(const auto split, Split<v1::ClientFrame>(frame));
  EXPECT_EQ(split.header.chunk().position(), 7);
  ASSERT_EQ(split.data.size(), 1);
  EXPECT_EQ(split.data[0].begin(), reinterpret_cast<const uint8_t*>(tensor.data()));
  EXPECT_EQ(split.data[0].size(), tensor.size());
}

TEST(FrameCodecTest, LentMemoryIsReturnedOnceWhenTheLastShareIsGone) {
  const std::string tensor(100, 't');
  int returned = 0;
  {
    grpc::ByteBuffer frame = MakeFrame(ChunkAt(0), LendSlice(tensor, [&] { ++returned; }));
    PW_ASSERT_OK_AND_ASSIGN(const auto split, Split<v1::ClientFrame>(frame));
    frame.Clear();
    EXPECT_EQ(returned, 0);
    EXPECT_EQ(Join(split.data), tensor);
  }
  EXPECT_EQ(returned, 1);
}

TEST(FrameCodecTest, SplitsFramesCutIntoSlicesAnywhere) {
  v1::ServerFrame chunk;
  chunk.mutable_chunk()->set_position(300);
  chunk.mutable_chunk()->set_data(std::string(300, 'd'));
  v1::ServerFrame result;
  result.mutable_result()->set_id(5);
  result.mutable_result()->mutable_status()->set_message("model \"a\": not hosted");
  for (const v1::ServerFrame& frame : {chunk, result}) {
    const std::string bytes = frame.SerializeAsString();
    for (size_t size = 1; size <= bytes.size(); ++size) {
      ExpectSplitsAsProtobufParses<v1::ServerFrame>(InPieces(bytes, size));
    }
  }
}

struct Encoding {
  absl::string_view name;
  std::string bytes;
};

std::string Field(int number, absl::string_view payload) {
  return std::string(1, static_cast<char>(number << 3 | 2)) +
         std::string(1, static_cast<char>(payload.size())) + std::string(payload);
}

// Field 3 is the chunk, 2 an operation; in the chunk 1 is the position, 15 the data.
const Encoding kForeignEncodings[] = {
    {"nothing at all", ""},
    {"an empty chunk", Field(3, "")},
    {"data before the position", Field(3, Field(15, "abc") + "\x08\x05")},
    {"data twice: the last counts", Field(3, Field(15, "abc") + "\x08\x05" + Field(15, "de"))},
    {"data emptied again", Field(3, Field(15, "abc") + Field(15, ""))},
    {"the position in ten bytes", Field(3, "\x08\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01")},
    {"a length longer than it needs to be", std::string("\x1A\x85\x00\x7A\x03xyz", 8)},
    {"unknown fields of each kind in the chunk",
     Field(3, std::string("\x10\x07\x19") + "12345678" +
                  "\x25"
                  "1234" +
                  Field(5, "unknown") + Field(15, "abc"))},
    {"an unknown group in the chunk", Field(3, "\x0B\x08\x01\x0C" + Field(15, "abc"))},
    {"an unknown field before the chunk", "\x50\x01" + Field(3, Field(15, "abc"))},
    {"a chunk in two parts, which merge", Field(3, "\x08\x05") + Field(3, Field(15, "abc"))},
    {"a chunk replaced by an operation", Field(3, Field(15, "abc")) + Field(2, "\x08\x01")},
    {"an operation replaced by a chunk", Field(2, "\x08\x01") + Field(3, Field(15, "abc"))},
    {"data of the wrong wire type", Field(3, "\x78\x05")},
    {"a chunk of the wrong wire type", "\x18\x05"},
};

const Encoding kMalformedEncodings[] = {
    {"a length past the end", "\x1A\x05\x08"},
    {"data past the end of the chunk", Field(3, "\x7A\x09xyz")},
    {"data past the end of the chunk but not of the frame", Field(3, "\x7A\x04xyz") + "\x50\x01"},
    {"the largest length there is", "\x1A\xFF\xFF\xFF\xFF\x0F"},
    {"a length of ten bytes", "\x1A\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01"},
    {"a tag that never ends", std::string(20, '\xFF')},
    {"a varint that never ends", Field(3, "\x08" + std::string(11, '\xFF'))},
    {"field number 0", Field(3, std::string("\x00\x01", 2))},
    {"a group that ends without beginning", Field(3, "\x0C")},
    {"a wire type that does not exist", Field(3, "\x0E")},
    {"a fixed field cut short", Field(3,
                                      "\x19"
                                      "1234")},
};

TEST(FrameCodecTest, ReadsEveryLegalEncodingAsProtobufDoes) {
  for (const Encoding& encoding : kForeignEncodings) {
    SCOPED_TRACE(std::string(encoding.name));
    PW_EXPECT_OK(Split<v1::ClientFrame>(InPieces(encoding.bytes, 2)).status());
    ExpectSplitsAsProtobufParses<v1::ClientFrame>(InPieces(encoding.bytes, 2));
  }
}

TEST(FrameCodecTest, RefusesBytesThatAreNotAFrame) {
  for (const Encoding& encoding : kMalformedEncodings) {
    SCOPED_TRACE(std::string(encoding.name));
    EXPECT_THAT(Split<v1::ClientFrame>(InPieces(encoding.bytes, 3)),
                HasReason(Reason::kProtocolViolation, HasSubstr("planewise.v1.ClientFrame")));
    ExpectSplitsAsProtobufParses<v1::ClientFrame>(InPieces(encoding.bytes, 3));
  }
}

TEST(FrameCodecTest, AgreesWithProtobufOnDamagedFrames) {
  std::mt19937_64 random(TestSeed());
  v1::ClientFrame chunk = ChunkAt(1 << 20);
  chunk.mutable_chunk()->set_data(std::string(40, 'd'));
  std::vector<std::string> seeds = {chunk.SerializeAsString()};
  for (const Encoding& encoding : kForeignEncodings) seeds.push_back(encoding.bytes);
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = seeds[random() % seeds.size()];
    for (uint64_t edits = random() % 4; edits > 0 && !bytes.empty(); --edits) {
      const size_t at = random() % bytes.size();
      switch (random() % 3) {
        case 0:
          bytes[at] = static_cast<char>(random());
          break;
        case 1:
          bytes.erase(at, 1 + random() % 3);
          break;
        default:
          bytes.insert(at, seeds[random() % seeds.size()]);
      }
    }
    SCOPED_TRACE(testing::Message() << "round " << round);
    ExpectSplitsAsProtobufParses<v1::ClientFrame>(InPieces(bytes, 1 + random() % 8));
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace planewise
