#include "core/numeric/float4_e2m1.h"

#include <array>
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
constexpr float kValues[] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};

const SmallFloatReference& Reference() {
  static const SmallFloatReference reference(/*mantissa_bits=*/1, /*bias=*/1,
                                             /*last_code=*/0x7);
  return reference;
}

uint32_t Encode(float value) { return Float4E2M1::FromFloat(value).bits; }

void ExpectEncodesAsReference(float value) {
  const uint32_t sign = std::signbit(value) ? 0x8 : 0;
  ASSERT_EQ(Encode(value), sign | Reference().Nearest(std::fabs(static_cast<double>(value))))
      << std::hexfloat << value;
}

TEST(Float4E2M1Test, EveryCodeHasItsValueAndSurvivesARoundTrip) {
  for (uint8_t code = 0; code < 8; ++code) {
    EXPECT_EQ(Float4E2M1{code}.ToFloat(), kValues[code]);
    EXPECT_EQ(kValues[code], Reference().Value(code));
    const uint8_t minus = code | 0x8;
    EXPECT_EQ(Float4E2M1{minus}.ToFloat(), -kValues[code]);
    EXPECT_TRUE(std::signbit(Float4E2M1{minus}.ToFloat()));
    EXPECT_EQ(Encode(kValues[code]), code);
    EXPECT_EQ(Encode(-kValues[code]), minus);
  }
  EXPECT_EQ(Float4E2M1{7}.ToFloat(), Float4E2M1::kMax);
}

TEST(Float4E2M1Test, TiesGoWhereTheContractSaysAndTheirNeighboursToTheNearer) {
  const struct {
    float tie;
    float at, below, above;
  } cases[] = {
      {0.25f, 0.0f, 0.0f, 0.5f}, {0.75f, 1.0f, 0.5f, 1.0f}, {1.25f, 1.0f, 1.0f, 1.5f},
      {1.75f, 2.0f, 1.5f, 2.0f}, {2.5f, 2.0f, 2.0f, 3.0f},  {3.5f, 4.0f, 3.0f, 4.0f},
      {5.0f, 4.0f, 4.0f, 6.0f},
  };
  for (const auto& c : cases) {
    for (const float sign : {1.0f, -1.0f}) {
      const auto rounded = [&](float value) {
        return Float4E2M1::FromFloat(sign * value).ToFloat() * sign;
      };
      EXPECT_EQ(rounded(c.tie), c.at) << c.tie;
      EXPECT_EQ(rounded(std::nextafterf(c.tie, 0.0f)), c.below) << c.tie;
      EXPECT_EQ(rounded(std::nextafterf(c.tie, kInfinity)), c.above) << c.tie;
    }
  }
}

TEST(Float4E2M1Test, EveryBFloat16RoundsAsTheReference) {
  for (uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const float value = BFloat16{static_cast<uint16_t>(bits)}.ToFloat();
    if (!std::isnan(value)) ExpectEncodesAsReference(value);
  }
}

TEST(Float4E2M1Test, CodesAndMidpointsAndTheirNeighboursRoundAsTheReference) {
  for (const float value : Reference().Probes()) {
    ExpectEncodesAsReference(value);
    ExpectEncodesAsReference(-value);
  }
}

TEST(Float4E2M1Test, RandomFloatsRoundAsTheReference) {
  std::mt19937_64 random(TestSeed());
  for (int i = 0; i < 200000; ++i) {
    const float value = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (!std::isnan(value)) ExpectEncodesAsReference(value);
    // Most random bits are far outside the format: scale some into it.
    const float inside = std::ldexp(std::fmod(value, 1.0f), static_cast<int>(random() % 8) - 4);
    if (!std::isnan(inside)) ExpectEncodesAsReference(inside);
  }
}

TEST(Float4E2M1Test, SaturatesKeepsSignsAndMakesTheLargestOfNan) {
  EXPECT_EQ(Encode(kInfinity), 0x7u);
  EXPECT_EQ(Encode(-kInfinity), 0xFu);
  EXPECT_EQ(Encode(std::numeric_limits<float>::max()), 0x7u);
  EXPECT_EQ(Encode(0.0f), 0x0u);
  EXPECT_EQ(Encode(-0.0f), 0x8u);
  EXPECT_EQ(Encode(std::numeric_limits<float>::denorm_min()), 0x0u);
  EXPECT_EQ(Encode(-std::numeric_limits<float>::denorm_min()), 0x8u);
  for (const uint32_t nan : {0x7FC00000u, 0xFFC00000u, 0x7F800001u, 0xFFFFFFFFu}) {
    EXPECT_EQ(Encode(std::bit_cast<float>(nan)), 0x7u);
  }
}

TEST(Float4E2M1Test, PacksTheEvenElementLow) {
  for (uint8_t even = 0; even < 16; ++even) {
    for (uint8_t odd = 0; odd < 16; ++odd) {
      const uint8_t packed = PackPair({even}, {odd});
      EXPECT_EQ(packed, even + 16 * odd);
      EXPECT_EQ(LoadPacked(&packed, 0), Float4E2M1{even});
      EXPECT_EQ(LoadPacked(&packed, 1), Float4E2M1{odd});
    }
  }
}

TEST(Float4E2M1Test, StoringOneElementKeepsItsNeighbour) {
  std::array<uint8_t, 2> packed = {0xA5, 0xA5};
  StorePacked(packed.data(), 1, {0x3});
  StorePacked(packed.data(), 2, {0xC});
  EXPECT_EQ(packed, (std::array<uint8_t, 2>{0x35, 0xAC}));
  EXPECT_EQ(LoadPacked(packed.data(), 1), Float4E2M1{0x3});
  EXPECT_EQ(LoadPacked(packed.data(), 2), Float4E2M1{0xC});
}

static_assert(Float4E2M1::FromFloat(1.4f).ToFloat() == 1.5f, "usable in constant expressions");

}  // namespace
}  // namespace planewise
