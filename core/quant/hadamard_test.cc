#include "core/quant/hadamard.h"

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "gtest/gtest.h"
#include "tests/testing/seed.h"

namespace planewise {
namespace {

using Values = std::array<float, kHadamardBlock>;

// Element j from the definition, exact for values of few bits.
double Reference(const Values& values, int j) {
  const char* signs = "+++-+------+-+--";
  double sum = 0;
  for (int i = 0; i < 16; ++i) {
    const bool minus = (signs[i] == '-') != (std::popcount(static_cast<unsigned>(i & j)) % 2 == 1);
    sum += (minus ? -0.25 : 0.25) * static_cast<double>(values[static_cast<size_t>(i)]);
  }
  return sum;
}

TEST(HadamardTest, EqualsTheDefinitionWhereSumsAreExact) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 1000; ++round) {
    Values values;
    // Multiples of one step, all far below 2^24 of them.
    for (float& value : values) {
      value = std::ldexp(static_cast<float>(static_cast<int>(random() % 511) - 255), round % 60);
    }
    const Values transformed = HadamardTransform(values);
    for (int j = 0; j < 16; ++j) {
      const float want = BFloat16::FromFloat(static_cast<float>(Reference(values, j))).ToFloat();
      ASSERT_EQ(transformed[static_cast<size_t>(j)], want) << j;
    }
  }
}

// Four sums one after another, then a rounding to 8 bits.
TEST(HadamardTest, StaysWithinTheRoundingOfItsSums) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 1000; ++round) {
    Values values;
    double magnitudes = 0;
    for (float& value : values) {
      value = std::ldexp(static_cast<float>(static_cast<int32_t>(random())),
                         static_cast<int>(random() % 40) - 20);
      magnitudes += std::fabs(static_cast<double>(value)) / 4;
    }
    const Values transformed = HadamardTransform(values);
    for (int j = 0; j < 16; ++j) {
      const double want = Reference(values, j);
      const double sums = 4.01 * 0x1p-24 * magnitudes;
      ASSERT_NEAR(static_cast<double>(transformed[static_cast<size_t>(j)]), want,
                  sums + 0x1.01p-8 * (std::fabs(want) + sums))
          << j;
    }
  }
}

TEST(HadamardTest, KeepsProductsOfColumns) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 100; ++round) {
    Values a;
    Values b;
    // Few enough bits that BF16 holds every sum.
    for (float& value : a) value = static_cast<float>(static_cast<int>(random() % 3) - 1) * 4;
    for (float& value : b) value = static_cast<float>(static_cast<int>(random() % 3) - 1) * 4;
    const Values ta = HadamardTransform(a);
    const Values tb = HadamardTransform(b);
    float before = 0;
    float after = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      before += a[i] * b[i];
      after += ta[i] * tb[i];
    }
    EXPECT_EQ(before, after);
  }
}

TEST(HadamardTest, AnInfinityOrANanReachesItsWholeBlock) {
  for (const float bad :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    Values values = {};
    values[5] = bad;
    for (const float value : HadamardTransform(values)) EXPECT_FALSE(std::isfinite(value));
  }
}

}  // namespace
}  // namespace planewise
