#include "core/quant/code_transpose.h"

#include <random>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/testing/byte_matchers.h"
#include "tests/testing/seed.h"

namespace planewise {
namespace {

// One less and one more than whole squares and tiles, and nothing.
constexpr std::pair<int64_t, int64_t> kShapes[] = {
    {0, 5},   {5, 0},    {1, 1},    {7, 9},     {8, 8},     {16, 16},   {15, 17},
    {17, 33}, {64, 128}, {65, 127}, {128, 256}, {130, 257}, {129, 100},
};

std::vector<uint8_t> RandomBytes(int64_t count, std::mt19937_64& random) {
  std::vector<uint8_t> bytes(static_cast<size_t>(count));
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  return bytes;
}

size_t At(int64_t index) { return static_cast<size_t>(index); }

// The target's rows are longer than what is written, and what lies between stays.
TEST(CodeTransposeTest, MovesEveryByte) {
  std::mt19937_64 random(TestSeed());
  for (const auto& [rows, columns] : kShapes) {
    SCOPED_TRACE(testing::Message() << rows << " by " << columns);
    const int64_t from_stride = columns + 3;
    const int64_t to_stride = rows + 5;
    const std::vector<uint8_t> from = RandomBytes(rows * from_stride, random);
    std::vector<uint8_t> to = RandomBytes(columns * to_stride, random);
    std::vector<uint8_t> want = to;
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        want[At(j * to_stride + i)] = from[At(i * from_stride + j)];
      }
    }
    TransposeBytes({from.data(), from_stride}, rows, columns, {to.data(), to_stride});
    EXPECT_THAT(to, SameBytes(want));
  }
}

TEST(CodeTransposeTest, MovesEveryHalfByteAndPadsOddRowsWithZero) {
  std::mt19937_64 random(TestSeed());
  for (const auto& [rows, columns] : kShapes) {
    SCOPED_TRACE(testing::Message() << rows << " by " << columns);
    const int64_t from_stride = (columns + 1) / 2 + 3;
    const int64_t to_stride = (rows + 1) / 2 + 5;
    const std::vector<uint8_t> from = RandomBytes(rows * from_stride, random);
    std::vector<uint8_t> to = RandomBytes(columns * to_stride, random);
    std::vector<uint8_t> want = to;
    for (int64_t j = 0; j < columns; ++j) {
      for (int64_t i = 0; i < rows + rows % 2; ++i) {
        int code = 0;
        if (i < rows) code = from[At(i * from_stride + j / 2)] >> (j % 2 * 4) & 0xF;
        uint8_t& byte = want[At(j * to_stride + i / 2)];
        byte = static_cast<uint8_t>(i % 2 == 0 ? (byte & 0xF0) | code : (byte & 0x0F) | code << 4);
      }
    }
    TransposePacked({from.data(), from_stride}, rows, columns, {to.data(), to_stride});
    EXPECT_THAT(to, SameBytes(want));
  }
}

}  // namespace
}  // namespace planewise
