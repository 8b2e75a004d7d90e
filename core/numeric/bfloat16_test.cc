#include "core/numeric/bfloat16.h"

#include <cmath>
#include <limits>
#include <random>

#include "core/numeric/small_float_reference.h"
#include "gtest/gtest.h"
#include "tests/testing/seed.h"

namespace planewise {
namespace {

constexpr uint32_t kInfinityCode = 0x7F80;

const SmallFloatReference& Reference() {
  static const SmallFloatReference reference(/*mantissa_bits=*/7, /*bias=*/127,
                                             /*last_code=*/kInfinityCode);
  return reference;
}

void ExpectNarrowsAsReference(float value) {
  const uint32_t sign = std::signbit(value) ? 0x8000 : 0;
  ASSERT_EQ(BFloat16::FromFloat(value).bits,
            sign | Reference().Nearest(std::fabs(static_cast<double>(value))))
      << std::hexfloat << value;
}

TEST(BFloat16Test, EveryCodeHasTheValueOfItsFormulaAndSurvivesARoundTrip) {
  for (uint32_t bits = 0; bits < kInfinityCode; ++bits) {
    for (const uint32_t sign : {0u, 0x8000u}) {
      const BFloat16 code{static_cast<uint16_t>(bits | sign)};
      ASSERT_EQ(code.ToFloat(), (sign != 0 ? -1 : 1) * Reference().Value(bits));
      ASSERT_EQ(BFloat16::FromFloat(code.ToFloat()), code);
    }
  }
}

TEST(BFloat16Test, CodesAndMidpointsAndTheirNeighboursRoundAsTheReference) {
  for (const float value : Reference().Probes()) {
    ExpectNarrowsAsReference(value);
    ExpectNarrowsAsReference(-value);
  }
}

TEST(BFloat16Test, RandomFloatsRoundAsTheReference) {
  std::mt19937_64 random(TestSeed());
  for (int i = 0; i < 200000; ++i) {
    const float value = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (!std::isnan(value)) ExpectNarrowsAsReference(value);
  }
}

TEST(BFloat16Test, OverflowsToInfinityKeepsSignsAndCanonicalisesNan) {
  EXPECT_EQ(BFloat16::FromFloat(std::numeric_limits<float>::max()).bits, 0x7F80);
  EXPECT_EQ(BFloat16::FromFloat(-std::numeric_limits<float>::infinity()).bits, 0xFF80);
  EXPECT_EQ(BFloat16::FromFloat(-0.0f).bits, 0x8000);
  EXPECT_TRUE(std::isnan(BFloat16{0x7F81}.ToFloat()));
  for (const uint32_t nan : {0x7FC00000u, 0xFFC00000u, 0x7F800001u, 0xFFFFFFFFu}) {
    EXPECT_EQ(BFloat16::FromFloat(std::bit_cast<float>(nan)).bits, 0x7FFF);
  }
}

static_assert(BFloat16::FromFloat(1.0f).ToFloat() == 1.0f, "usable in constant expressions");

}  // namespace
}  // namespace planewise
