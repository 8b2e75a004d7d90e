#include "core/quant/mxfp8_block.h"

#include <array>
#include <cmath>
#include <limits>

#include "core/numeric/bfloat16.h"
#include "core/numeric/float8_e4m3.h"
#include "core/numeric/float8_e5m2.h"
#include "core/quant/mxfp8_reference.h"
#include "gtest/gtest.h"

namespace planewise {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

uint32_t ScaleE4M3(float amax) { return Mxfp8Scale<Float8E4M3>(amax).bits; }
uint32_t ScaleE5M2(float amax) { return Mxfp8Scale<Float8E5M2>(amax).bits; }

// Both the rule and the closed form never fall as amax grows, so agreement on
// both sides of every boundary is agreement everywhere.
TEST(Mxfp8ScaleTest, EqualsTheClosedFormButForOneF32Number) {
  for (const DType element : {DType::kF8E4M3, DType::kF8E5M2}) {
    const Mxfp8Reference reference(element);
    const auto scale = element == DType::kF8E4M3 ? ScaleE4M3 : ScaleE5M2;
    for (int b = 0; b <= 254; ++b) {
      // Beyond F32 for the largest b: there is no boundary to stand beside.
      const double boundary = reference.max() * std::ldexp(1.0, b - 127);
      if (boundary > std::numeric_limits<float>::max()) break;
      float amax = static_cast<float>(boundary);
      for (int i = 0; i < 4; ++i) amax = std::nextafterf(amax, 0.0f);
      for (int i = -4; i <= 4; ++i, amax = std::nextafterf(amax, kInfinity)) {
        EXPECT_EQ(scale(amax), reference.ScaleOf(amax)) << Name(element) << " b " << b << " " << i;
      }
    }
    const float exception = reference.JustAboveTheSmallestBoundary();
    EXPECT_EQ(scale(exception), 0u);
    EXPECT_EQ(scale(std::nextafterf(exception, kInfinity)), 1u);
    EXPECT_NE(BFloat16::FromFloat(exception).ToFloat(), exception) << "no BF16 input meets it";
    EXPECT_EQ(scale(0.0f), 0u);
    EXPECT_EQ(scale(std::numeric_limits<float>::max()),
              reference.ScaleOf(std::numeric_limits<float>::max()));
    EXPECT_EQ(scale(kInfinity), 254u);
  }
}

TEST(Mxfp8ScaleTest, TheReciprocalsAreTheOnesOfTheContract) {
  EXPECT_EQ(std::bit_cast<uint32_t>(1.0f / Float8E4M3::kMax), 0x3B124925u);
  EXPECT_EQ(std::bit_cast<uint32_t>(1.0f / Float8E5M2::kMax), 0x37924925u);
}

std::array<uint8_t, 4> QuantizeFour(std::array<float, 4> values, uint8_t& scale) {
  std::array<Float8E4M3, 4> codes;
  scale = QuantizeMxfp8Block(values.data(), 4, 1, codes.data()).bits;
  return {codes[0].bits, codes[1].bits, codes[2].bits, codes[3].bits};
}

struct Case {
  const char* name;
  std::array<float, 4> values;
  uint8_t scale;
  std::array<uint8_t, 4> codes;
};

// By hand, E4M3: 1.0 is 0x38, 448 is 0x7E.
TEST(Mxfp8BlockTest, BlocksByHand) {
  const Case cases[] = {
      {"zeros keep their sign", {0.0f, -0.0f, 0.0f, -0.0f}, 0, {0x00, 0x80, 0x00, 0x80}},
      {"448 itself needs no larger scale", {448.0f, 1.0f, -1.0f, 0.0f}, 127,
       {0x7E, 0x38, 0xB8, 0x00}},
      {"just above 448 does", {std::nextafterf(448.0f, 500.0f), 1.0f, -1.0f, 0.0f}, 128,
       {0x76, 0x30, 0xB0, 0x00}},
      {"a NaN is no maximum and becomes 0x7F", {kNan, 1.0f, -kNan, -448.0f}, 127,
       {0x7F, 0x38, 0x7F, 0xFE}},
      {"only NaN: as a block of zeros", {kNan, kNan, -kNan, kNan}, 0, {0x7F, 0x7F, 0x7F, 0x7F}},
      {"an infinity takes the largest scale; 2^126 * 2^-127 = 0.5",
       {kInfinity, -kInfinity, 0x1p126f, 1.0f}, 254, {0x7E, 0xFE, 0x30, 0x00}},
      {"the smallest subnormal: 2^-149 * 2^127 is below half a step", {0x1p-149f, 0, 0, 0}, 0,
       {0x00, 0x00, 0x00, 0x00}},
      {"ties go to the even code: 17 and 19 lie between 16, 18 and 20",
       {448.0f, 17.0f, 19.0f, -17.0f}, 127, {0x7E, 0x58, 0x5A, 0xD8}},
  };
  for (const Case& test : cases) {
    SCOPED_TRACE(test.name);
    uint8_t scale = 0;
    EXPECT_EQ(QuantizeFour(test.values, scale), test.codes);
    EXPECT_EQ(scale, test.scale);
  }
}

TEST(Mxfp8BlockTest, StrideSkipsWhatLiesBetween) {
  const std::array<float, 6> values = {1.0f, 1000.0f, 2.0f, 1000.0f, 4.0f, 1000.0f};
  std::array<Float8E4M3, 6> codes;
  codes.fill({0xAB});
  QuantizeMxfp8Block(values.data(), 3, 2, codes.data());
  EXPECT_EQ(codes[1].bits, 0xAB);
  EXPECT_EQ(codes[5].bits, 0xAB);
  EXPECT_EQ(codes[4].bits, 0x78);  // 256: 4 is the block's maximum
}

}  // namespace
}  // namespace planewise
