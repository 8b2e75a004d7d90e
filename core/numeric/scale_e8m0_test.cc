#include "core/numeric/scale_e8m0.h"

#include <cmath>
#include <limits>
#include <random>

#include "gtest/gtest.h"
#include "tests/testing/seed.h"

namespace planewise {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

uint32_t RoundUp(float value) { return ScaleE8M0::RoundUp(value).bits; }

// By search, in double, where every power is normal and exact.
uint32_t SmallestPowerNotBelow(float value) {
  uint32_t b = 0;
  while (b < ScaleE8M0::kMax && std::ldexp(1.0, static_cast<int>(b) - 127) < value) ++b;
  return b;
}

TEST(ScaleE8M0Test, EveryByteIsItsPowerOfTwo) {
  for (int b = 0; b <= ScaleE8M0::kMax; ++b) {
    const ScaleE8M0 scale{static_cast<uint8_t>(b)};
    EXPECT_EQ(scale.ToFloat(), std::ldexp(1.0, b - 127)) << b;
    EXPECT_EQ(scale.EncodeMultiplier(), std::ldexp(1.0, 127 - b)) << b;
    EXPECT_EQ(ScaleE8M0::RoundUp(scale.ToFloat()), scale) << b;
  }
  EXPECT_EQ(std::bit_cast<uint32_t>(ScaleE8M0{255}.ToFloat()), 0x7FFFFFFFu);
  EXPECT_EQ(std::bit_cast<uint32_t>(ScaleE8M0{255}.EncodeMultiplier()), 0x7FFFFFFFu);
}

TEST(ScaleE8M0Test, TheSubnormalPowersAreKept) {
  EXPECT_EQ(std::bit_cast<uint32_t>(ScaleE8M0{0}.ToFloat()), 0x00400000u);
  EXPECT_EQ(std::bit_cast<uint32_t>(ScaleE8M0{254}.EncodeMultiplier()), 0x00400000u);
}

TEST(ScaleE8M0Test, RoundsUpAroundEveryPower) {
  for (int b = 0; b <= ScaleE8M0::kMax; ++b) {
    const float power = static_cast<float>(std::ldexp(1.0, b - 127));
    EXPECT_EQ(RoundUp(power), static_cast<uint32_t>(b));
    EXPECT_EQ(RoundUp(std::nextafterf(power, 0.0f)), static_cast<uint32_t>(b)) << b;
    EXPECT_EQ(RoundUp(std::nextafterf(power, kInfinity)), std::min(b + 1, 254)) << b;
  }
}

TEST(ScaleE8M0Test, RoundsUpSubnormals) {
  EXPECT_EQ(RoundUp(std::numeric_limits<float>::denorm_min()), 0u);
  EXPECT_EQ(RoundUp(std::bit_cast<float>(0x00400000u)), 0u);
  EXPECT_EQ(RoundUp(std::bit_cast<float>(0x00400001u)), 1u);
  EXPECT_EQ(RoundUp(std::bit_cast<float>(0x007FFFFFu)), 1u);
  EXPECT_EQ(RoundUp(std::bit_cast<float>(0x00800000u)), 1u);
  EXPECT_EQ(RoundUp(std::bit_cast<float>(0x00800001u)), 2u);
}

TEST(ScaleE8M0Test, RoundsUpZeroOverflowInfinityAndNan) {
  EXPECT_EQ(RoundUp(0.0f), 0u);
  EXPECT_EQ(RoundUp(std::numeric_limits<float>::max()), 254u);
  EXPECT_EQ(RoundUp(kInfinity), 254u);
  EXPECT_EQ(RoundUp(kNan), 255u);
}

TEST(ScaleE8M0Test, RandomMagnitudesRoundUpAsTheSearch) {
  std::mt19937_64 random(TestSeed());
  for (int i = 0; i < 100000; ++i) {
    const float value = std::bit_cast<float>(static_cast<uint32_t>(random() >> 33));
    if (std::isnan(value)) continue;
    ASSERT_EQ(RoundUp(value), SmallestPowerNotBelow(value)) << std::hexfloat << value;
  }
}

static_assert(ScaleE8M0::RoundUp(3.0f).ToFloat() == 4.0f, "usable in constant expressions");

}  // namespace
}  // namespace planewise
