#include "core/numeric/float16.h"

#include <cmath>
#include <limits>
#include <random>

#include "core/numeric/small_float_reference.h"
#include "gtest/gtest.h"
#include "tests/testing/seed.h"

namespace planewise {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

const SmallFloatReference& Reference() {
  static const SmallFloatReference reference(/*mantissa_bits=*/10, /*bias=*/15,
                                             /*last_code=*/Float16::kInfinity);
  return reference;
}

void ExpectNarrowsAsReference(float value) {
  const uint32_t sign = std::signbit(value) ? 0x8000 : 0;
  ASSERT_EQ(Float16::FromFloat(value).bits,
            sign | Reference().Nearest(std::fabs(static_cast<double>(value))))
      << std::hexfloat << value;
}

TEST(Float16Test, EveryCodeHasTheValueOfItsFormulaAndSurvivesARoundTrip) {
  for (uint32_t bits = 0; bits < Float16::kInfinity; ++bits) {
    for (const uint32_t sign : {0u, 0x8000u}) {
      const Float16 code{static_cast<uint16_t>(bits | sign)};
      ASSERT_EQ(code.ToFloat(), (sign != 0 ? -1 : 1) * Reference().Value(bits));
      ASSERT_EQ(Float16::FromFloat(code.ToFloat()), code);
    }
  }
}

TEST(Float16Test, InfinityAndNanCodesWiden) {
  EXPECT_EQ((Float16{0x7C00}.ToFloat()), kInfinity);
  EXPECT_EQ((Float16{0xFC00}.ToFloat()), -kInfinity);
  for (const uint32_t code : {0x7C01u, 0x7FFFu, 0xFC01u, 0xFFFFu}) {
    EXPECT_EQ(std::bit_cast<uint32_t>(Float16{static_cast<uint16_t>(code)}.ToFloat()),
              0x7FFFFFFFu);
  }
}

TEST(Float16Test, CodesAndMidpointsAndTheirNeighboursRoundAsTheReference) {
  for (const float value : Reference().Probes()) {
    ExpectNarrowsAsReference(value);
    ExpectNarrowsAsReference(-value);
  }
}

TEST(Float16Test, RandomFloatsRoundAsTheReference) {
  std::mt19937_64 random(TestSeed());
  for (int i = 0; i < 200000; ++i) {
    const float value = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (!std::isnan(value)) ExpectNarrowsAsReference(value);
    // Most random bits are far outside the format: scale some into it.
    const float inside = std::ldexp(std::fmod(value, 1.0f), static_cast<int>(random() % 44) - 26);
    if (!std::isnan(inside)) ExpectNarrowsAsReference(inside);
  }
}

TEST(Float16Test, OverflowsToInfinityKeepsSignsAndCanonicalisesNan) {
  EXPECT_EQ(Float16::FromFloat(65519.996f).bits, 0x7BFF);
  EXPECT_EQ(Float16::FromFloat(65520.0f).bits, 0x7C00);
  EXPECT_EQ(Float16::FromFloat(-kInfinity).bits, 0xFC00);
  EXPECT_EQ(Float16::FromFloat(-0.0f).bits, 0x8000);
  for (const uint32_t nan : {0x7FC00000u, 0xFFC00000u, 0x7F800001u, 0xFFFFFFFFu}) {
    EXPECT_EQ(Float16::FromFloat(std::bit_cast<float>(nan)).bits, 0x7FFF);
  }
}

static_assert(Float16::FromFloat(1.0f).ToFloat() == 1.0f, "usable in constant expressions");

}  // namespace
}  // namespace planewise
