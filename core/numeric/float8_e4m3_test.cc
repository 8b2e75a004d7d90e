#include "core/numeric/float8_e4m3.h"

#include <cmath>
#include <limits>
#include <random>

#include "core/numeric/bfloat16.h"
#include "core/numeric/small_float_reference.h"
#include "gtest/gtest.h"
#include "tests/testing/seed.h"

namespace planewise {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

const SmallFloatReference& Reference() {
  static const SmallFloatReference reference(/*mantissa_bits=*/3, /*bias=*/7,
                                             /*last_code=*/0x7E);
  return reference;
}

uint32_t Encode(float value) { return Float8E4M3::FromFloat(value).bits; }

void ExpectEncodesAsReference(float value) {
  const uint32_t sign = std::signbit(value) ? 0x80 : 0;
  ASSERT_EQ(Encode(value), sign | Reference().Nearest(std::fabs(static_cast<double>(value))))
      << std::hexfloat << value;
}

TEST(Float8E4M3Test, EveryCodeHasTheValueOfItsFormula) {
  for (uint32_t code = 0; code <= 0x7E; ++code) {
    EXPECT_EQ(Float8E4M3{static_cast<uint8_t>(code)}.ToFloat(), Reference().Value(code)) << code;
    const float negative = Float8E4M3{static_cast<uint8_t>(code | 0x80)}.ToFloat();
    EXPECT_EQ(negative, -Reference().Value(code)) << code;
    EXPECT_TRUE(std::signbit(negative)) << code;
  }
  EXPECT_EQ((Float8E4M3{0x7E}.ToFloat()), Float8E4M3::kMax);
}

TEST(Float8E4M3Test, BothNanCodesWidenToTheCanonicalNan) {
  for (const uint8_t code : {0x7F, 0xFF}) {
    EXPECT_EQ(std::bit_cast<uint32_t>(Float8E4M3{code}.ToFloat()), 0x7FFFFFFFu);
  }
}

TEST(Float8E4M3Test, EveryFiniteCodeSurvivesARoundTrip) {
  for (uint32_t code = 0; code <= 0x7E; ++code) {
    for (const uint32_t sign : {0x00u, 0x80u}) {
      EXPECT_EQ(Encode(Float8E4M3{static_cast<uint8_t>(code | sign)}.ToFloat()), code | sign);
    }
  }
}

TEST(Float8E4M3Test, EveryBFloat16RoundsAsTheReference) {
  for (uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const float value = BFloat16{static_cast<uint16_t>(bits)}.ToFloat();
    if (!std::isnan(value)) ExpectEncodesAsReference(value);
  }
}

TEST(Float8E4M3Test, CodesAndMidpointsAndTheirNeighboursRoundAsTheReference) {
  for (const float value : Reference().Probes()) {
    ExpectEncodesAsReference(value);
    ExpectEncodesAsReference(-value);
  }
}

TEST(Float8E4M3Test, RandomFloatsRoundAsTheReference) {
  std::mt19937_64 random(TestSeed());
  for (int i = 0; i < 200000; ++i) {
    const float value = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (!std::isnan(value)) ExpectEncodesAsReference(value);
    // Most random bits are far outside the format: scale some into it.
    const float inside = std::ldexp(std::fmod(value, 1.0f), static_cast<int>(random() % 32) - 16);
    if (!std::isnan(inside)) ExpectEncodesAsReference(inside);
  }
}

TEST(Float8E4M3Test, SaturatesKeepsSignsAndCanonicalisesNan) {
  EXPECT_EQ(Encode(kInfinity), 0x7Eu);
  EXPECT_EQ(Encode(-kInfinity), 0x7Eu | 0x80);
  EXPECT_EQ(Encode(std::numeric_limits<float>::max()), 0x7Eu);
  EXPECT_EQ(Encode(0.0f), 0x00u);
  EXPECT_EQ(Encode(-0.0f), 0x80u);
  EXPECT_EQ(Encode(-std::numeric_limits<float>::denorm_min()), 0x80u);
  for (const uint32_t nan : {0x7FC00000u, 0xFFC00000u, 0x7F800001u, 0xFFFFFFFFu}) {
    EXPECT_EQ(Encode(std::bit_cast<float>(nan)), 0x7Fu);
  }
}

static_assert(Float8E4M3::FromFloat(1.0f).ToFloat() == 1.0f, "usable in constant expressions");

}  // namespace
}  // namespace planewise
