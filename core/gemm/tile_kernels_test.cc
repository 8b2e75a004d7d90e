#include "core/gemm/tile_kernels.h"

#include <hwy/cache_control.h>
#include <hwy/targets.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/numeric/bfloat16.h"
#include "core/numeric/float16.h"
#include "core/numeric/float8_e4m3.h"
#include "core/numeric/float8_e5m2.h"
#include "gtest/gtest.h"
#include "tests/testing/seed.h"

namespace planewise {
namespace {

// Every test runs on every instruction set that this CPU has.
class TileKernelsTest : public testing::TestWithParam<int64_t> {
 protected:
  TileKernelsTest() { hwy::GetChosenTarget().Update(GetParam()); }
  ~TileKernelsTest() override { hwy::GetChosenTarget().Update(hwy::SupportedTargets()); }
};

std::vector<int64_t> Targets() {
  std::vector<int64_t> targets;
  for (int64_t rest = hwy::SupportedTargets(); rest != 0; rest &= rest - 1) {
    targets.push_back(rest & -rest);
  }
  return targets;
}

INSTANTIATE_TEST_SUITE_P(Targets, TileKernelsTest, testing::ValuesIn(Targets()),
                         [](const testing::TestParamInfo<int64_t>& info) {
                           return std::string(hwy::TargetName(info.param));
                         });

double CodeValue(DType element, uint8_t code) {
  return element == DType::kF8E4M3 ? Float8E4M3{code}.ToFloat() : Float8E5M2{code}.ToFloat();
}

// What code * 2^(scale - 127 + shift) must become, and whether `bits` is it.
testing::AssertionResult IsExpansion(DType element, uint8_t code, uint8_t scale, int shift,
                                     uint16_t bits) {
  const double want = scale == 255 ? std::nan("") : std::ldexp(CodeValue(element, code),
                                                               scale - 127 + shift);
  const double got = BFloat16{bits}.ToFloat();
  const bool same = std::isnan(want) ? std::isnan(got)
                                     : got == want && std::signbit(got) == std::signbit(want);
  if (same) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "code " << int{code} << " scale " << int{scale}
                                     << " shift " << shift << ": " << got << ", want " << want;
}

struct Placed {
  DType element;
  uint8_t scale;
  int16_t shift;
};

// The lowest and highest that BF16 holds as normal numbers, by scale alone and
// shifted from both ends.
constexpr Placed kPlaced[] = {
    {DType::kF8E4M3, 10, 0},   {DType::kF8E4M3, 127, 0},    {DType::kF8E4M3, 246, 0},
    {DType::kF8E4M3, 0, 10},   {DType::kF8E4M3, 254, -8},   {DType::kF8E4M3, 120, -110},
    {DType::kF8E4M3, 255, 0},  {DType::kF8E5M2, 17, 0},     {DType::kF8E5M2, 127, 0},
    {DType::kF8E5M2, 239, 0},  {DType::kF8E5M2, 254, -200}, {DType::kF8E5M2, 0, 17},
};

TEST_P(TileKernelsTest, ExpandsEveryCodeOfRows) {
  std::array<uint8_t, 256> codes;
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint8_t>(i);
  for (const Placed& placed : kPlaced) {
    const std::vector<uint8_t> scales(8, placed.scale);
    const std::vector<int16_t> shifts(4, placed.shift);
    std::vector<uint16_t> out(4 * 70, 0x1234);
    // Four rows of 64.
    ExpandRowBlocks({.element = placed.element, .codes = codes.data(), .code_stride = 64,
                     .scales = scales.data(), .scale_stride = 2, .shifts = shifts.data(),
                     .rows = 4, .columns = 64},
                    out.data(), 70);
    for (size_t i = 0; i < codes.size(); ++i) {
      ASSERT_TRUE(IsExpansion(placed.element, codes[i], placed.scale, placed.shift,
                              out[i / 64 * 70 + i % 64]));
    }
    for (size_t i = 64; i < 70; ++i) EXPECT_EQ(out[i], 0x1234);
  }
}

TEST_P(TileKernelsTest, ExpandsEveryCodeOfColumns) {
  std::array<uint8_t, 256> codes;
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint8_t>(i);
  // Columns of one call have different scales and shifts.
  for (const DType element : {DType::kF8E4M3, DType::kF8E5M2}) {
    std::vector<uint8_t> scales;
    std::vector<int16_t> shifts;
    while (scales.size() < 32) {
      for (const Placed& placed : kPlaced) {
        if (placed.element != element) continue;
        scales.push_back(placed.scale);
        shifts.push_back(placed.shift);
      }
    }
    std::vector<uint16_t> out(256 / 32 * 32);
    ExpandColumnBlocks({.element = element, .codes = codes.data(), .code_stride = 32,
                        .scales = scales.data(), .shifts = shifts.data(), .rows = 8,
                        .columns = 32},
                       out.data(), 32);
    for (size_t i = 0; i < codes.size(); ++i) {
      ASSERT_TRUE(IsExpansion(element, codes[i], scales[i % 32], shifts[i % 32], out[i]));
    }
  }
}

TEST_P(TileKernelsTest, ExpandsTilesOfRowsAsRowsThenTransposed) {
  std::mt19937_64 random(TestSeed());
  constexpr int64_t kStride = 4096;  // as many rows apart as caches dislike
  std::vector<uint8_t> codes(64 * kStride);
  std::vector<uint8_t> scales(64 * 2);
  std::vector<int16_t> shifts(64);
  for (uint8_t& code : codes) code = static_cast<uint8_t>(random());
  for (size_t i = 0; i < scales.size(); ++i) {
    scales[i] = i % 11 == 5 ? 255 : static_cast<uint8_t>(100 + random() % 30);
    shifts[i / 2] = static_cast<int16_t>(random() % 20);
  }
  for (const DType element : {DType::kF8E4M3, DType::kF8E5M2}) {
    for (const int64_t columns : {32, 64}) {
      const RowBlocks blocks = {.element = element, .codes = codes.data() + 1,
                                .code_stride = kStride, .scales = scales.data(),
                                .scale_stride = 2, .shifts = shifts.data(), .rows = 64,
                                .columns = columns};
      std::vector<uint16_t> rows(64 * 64);
      ExpandRowBlocks(blocks, rows.data(), columns);
      std::vector<uint16_t> want(64 * columns);
      for (int64_t first = 0; first < columns; first += 32) {
        TransposePairs(rows.data() + first, columns, want.data() + first * 64);
      }
      std::vector<uint16_t> got(64 * columns + 1, 0x1234);
      ExpandRowTile(blocks, got.data());
      EXPECT_EQ(got.back(), 0x1234);
      got.pop_back();
      EXPECT_EQ(got, want) << element << ", " << columns << " columns";
    }
  }
}

TEST_P(TileKernelsTest, MovesEveryElementOfABlock) {
  std::vector<uint16_t> in(70 * 70);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<uint16_t>(i);

  std::vector<uint16_t> transposed(64 * 40);
  TransposeBlock(in.data(), 70, transposed.data(), 40);
  std::vector<uint16_t> pairs(16 * 64 * 2);
  TransposePairs(in.data(), 70, pairs.data());
  std::vector<uint16_t> interleaved(16 * 64 * 2);
  InterleavePairs(in.data(), 70, interleaved.data());
  for (size_t p = 0; p < 32; ++p) {
    for (size_t row = 0; row < 64; ++row) {
      ASSERT_EQ(transposed[row * 40 + p], in[p * 70 + row]) << p << " " << row;
      ASSERT_EQ(pairs[p / 2 * 128 + 2 * row + p % 2], in[row * 70 + p]) << p << " " << row;
      ASSERT_EQ(interleaved[p / 2 * 128 + 2 * row + p % 2], in[p * 70 + row]) << p << " " << row;
    }
  }
}

TEST_P(TileKernelsTest, StoresAsTheScalarTypesRound) {
  std::mt19937_64 random(TestSeed());
  constexpr size_t kCount = 1003;
  std::vector<float> sums(kCount);
  std::vector<float> bias(kCount);
  for (size_t i = 0; i < kCount; ++i) {
    sums[i] = std::bit_cast<float>(static_cast<uint32_t>(random()));
    bias[i] = std::bit_cast<float>(static_cast<uint32_t>(random()) & 0xBFFFFFFFu);
  }
  // Ties of BF16, NaN, infinity.
  sums[0] = std::bit_cast<float>(0x3F808000u);
  sums[1] = std::bit_cast<float>(0x3F818000u);
  sums[2] = std::bit_cast<float>(0xFFC00001u);
  sums[3] = std::bit_cast<float>(0x7F800000u);
  sums[4] = std::bit_cast<float>(0x7F7FFFFFu);
  bias[0] = bias[1] = bias[2] = bias[3] = bias[4] = 0.0f;
  const float* const kBiases[] = {nullptr, bias.data()};
  for (const float* added : kBiases) {
    std::vector<float> f32(kCount);
    std::vector<uint16_t> bf16(kCount);
    std::vector<uint16_t> f16(kCount);
    const RowSums row = {sums.data(), kCount, added, 1, kCount};
    StoreRows(row, DType::kF32, f32.data(), 4 * kCount, false);
    StoreRows(row, DType::kBF16, bf16.data(), 2 * kCount, false);
    StoreRows(row, DType::kF16, f16.data(), 2 * kCount, false);
    for (size_t i = 0; i < kCount; ++i) {
      const float want = added != nullptr ? sums[i] + added[i] : sums[i];
      if (!std::isnan(want)) {
        ASSERT_EQ(std::bit_cast<uint32_t>(f32[i]), std::bit_cast<uint32_t>(want)) << i;
      }
      ASSERT_EQ(bf16[i], BFloat16::FromFloat(want).bits) << i << " " << want;
      ASSERT_EQ(f16[i], Float16::FromFloat(want).bits) << i << " " << want;
    }
  }
}

TEST_P(TileKernelsTest, StoresTheSamePastCaches) {
  constexpr int64_t kRows = 5;
  constexpr int64_t kStride = 96;  // of out, in floats: whole lines
  std::mt19937_64 random(TestSeed());
  std::vector<float> sums(kRows * 64);
  std::vector<float> bias(64);
  for (float& value : sums) value = static_cast<float>(random() % 1000);
  for (float& value : bias) value = static_cast<float>(random() % 1000);
  alignas(64) std::array<float, kRows * kStride> out;
  for (const int64_t columns : {64, 48, 32, 23}) {
    for (const int64_t first : {0, 1}) {  // aligned and not
      for (const float* added : {static_cast<const float*>(nullptr), std::as_const(bias).data()}) {
        out.fill(-1.0f);
        StoreRows({sums.data(), 64, added, kRows, columns}, DType::kF32, out.data() + first,
                  4 * kStride, true);
        hwy::FlushStream();
        for (int64_t i = 0; i < kRows * kStride; ++i) {
          const int64_t row = i / kStride;
          const int64_t column = i % kStride - first;
          const bool inside = column >= 0 && column < columns;
          const float want = !inside ? -1.0f
                                     : sums[static_cast<size_t>(row * 64 + column)] +
                                           (added != nullptr ? added[column] : 0.0f);
          ASSERT_EQ(out[static_cast<size_t>(i)], want) << row << " " << column;
        }
      }
    }
  }
}

TEST_P(TileKernelsTest, WidensBf16) {
  std::vector<uint16_t> in(1000);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<uint16_t>(i * 65);
  std::vector<float> out(in.size());
  WidenRow(in.data(), static_cast<int64_t>(in.size()), out.data());
  for (size_t i = 0; i < in.size(); ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(out[i]), static_cast<uint32_t>(in[i]) << 16);
  }
}

}  // namespace
}  // namespace planewise
