#include "core/quant/fp8_scale.h"

#include <limits>
#include <random>
#include <vector>

#include "core/quant/fp8_scale_reference.h"
#include "gtest/gtest.h"
#include "tests/testing/seed.h"

namespace planewise {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kLargest = std::numeric_limits<float>::max();

TEST(Fp8ScaleTest, FollowsTheOrderOfTheRule) {
  const struct {
    const char* name;
    float amax;
    Fp8ScaleRule rule;
    float want;
  } cases[] = {
      {"the quotient", 2.0f, {.element_max = 448}, 224.0f},
      {"zero has scale 1", 0.0f, {.element_max = 448}, 1.0f},
      {"infinity has scale 1", kInfinity, {.element_max = 448}, 1.0f},
      {"NaN has scale 1, also under an epsilon", kNan, {.element_max = 448, .epsilon = 1}, 1.0f},
      {"epsilon replaces what is below", 0.5f, {.element_max = 448, .epsilon = 1}, 448.0f},
      {"epsilon replaces zero", 0.0f, {.element_max = 448, .epsilon = 2}, 224.0f},
      {"epsilon leaves what reaches it", 2.0f, {.element_max = 448, .epsilon = 2}, 224.0f},
      {"a power of two rounds the scale down",
       1.0f,
       {.element_max = 448, .power_of_two = true},
       256.0f},
      {"and keeps a power of two", 1.75f, {.element_max = 448, .power_of_two = true}, 256.0f},
      {"a subnormal amax is cut to F32's largest", 1e-40f, {.element_max = 448}, kLargest},
      {"or the largest given", 1e-40f, {.element_max = 448, .largest_scale = 65504}, 65504.0f},
      {"the cut comes before the power of two",
       1e-40f,
       {.element_max = 448, .power_of_two = true},
       0x1p127f},
  };
  for (const auto& c : cases) EXPECT_EQ(EncodeScale(c.amax, c.rule), c.want) << c.name;
}

TEST(Fp8ScaleTest, BlocksAreCutToTheLargestOfTheirSource) {
  EXPECT_EQ(LargestBlockScale(DType::kBF16), 0x1.fep127f);
  EXPECT_EQ(LargestBlockScale(DType::kF16), 65504.0f);
  EXPECT_EQ(LargestBlockScale(DType::kF32), kLargest);
}

// Field report 30: the decode scale of the largest encode scale is a subnormal,
// not zero, and so a code is never multiplied by zero or divided by it.
TEST(Fp8ScaleTest, TheSmallestDecodeScaleIsNotZero) {
  EXPECT_EQ(DecodeScale(kLargest), 0x1p-128f);
  EXPECT_EQ(DecodeScale(0x1p127f), 0x1p-127f);
}

TEST(NearestQuotientTest, RoundsAsTheDefinition) {
  EXPECT_EQ(NearestQuotient(1, 3), 0x1.555556p-2f);
  EXPECT_EQ(NearestQuotient(448, 2), 224.0f);
  EXPECT_EQ(NearestQuotient(448, 1e-40f), kInfinity);
  EXPECT_EQ(NearestQuotient(1, 0x1p127f), 0x1p-127f);
  // 2^-149 * 1.5 lies half-way: to the even one.
  EXPECT_EQ(NearestQuotient(1.5f, 0x1p127f) * 0x1p100f, 0x1.8p-27f);
  EXPECT_EQ(NearestQuotient(0x1.8p-100f, 0x1p49f), 0x1p-148f);
  EXPECT_EQ(NearestQuotient(0x1.4p-99f, 0x1p49f), 0x1p-147f * 0.5f);
}

TEST(Fp8ScaleTest, EqualsTheReference) {
  std::mt19937_64 random(TestSeed());
  std::vector<float> amaxes = {0, kInfinity, kNan, kLargest, 1e-40f, 0x1p-149f, 448, 57344};
  for (int i = 0; i < 3000; ++i) {
    const float any = std::bit_cast<float>(static_cast<uint32_t>(random() & 0x7FFFFFFF));
    amaxes.push_back(any);
    // Around powers of two times the largest code, where a power of two changes.
    const float edge = std::ldexp(1.75f, static_cast<int>(random() % 270) - 145);
    amaxes.insert(amaxes.end(), {edge, std::nextafterf(edge, 0), std::nextafterf(edge, kInfinity)});
  }
  for (const DType element : {DType::kF8E4M3, DType::kF8E5M2}) {
    for (const DType source : {DType::kF32, DType::kBF16, DType::kF16}) {
      for (const bool block : {false, true}) {
        const bool power_of_two = random() % 2 == 0;
        const float epsilon = random() % 2 == 0 ? 0.0f : 1e-3f;
        const Fp8ScaleReference reference(element, power_of_two, epsilon, block, source);
        const Fp8ScaleRule rule = {reference.max(), power_of_two, epsilon,
                                   block ? LargestBlockScale(source) : kLargest};
        for (const float amax : amaxes) {
          ASSERT_EQ(EncodeScale(amax, rule), reference.Encode(amax)) << std::hexfloat << amax;
          ASSERT_EQ(DecodeScale(EncodeScale(amax, rule)), reference.Decode(amax))
              << std::hexfloat << amax;
        }
      }
    }
  }
}

}  // namespace
}  // namespace planewise
