#include "core/numeric/stochastic_rounding.h"

#include <cmath>
#include <limits>
#include <random>
#include <set>

#include "core/numeric/float4_e2m1.h"
#include "core/numeric/float8_e4m3.h"
#include "core/numeric/float8_e5m2.h"
#include "core/numeric/small_float_reference.h"
#include "gtest/gtest.h"
#include "tests/testing/seed.h"

namespace planewise {
namespace {

constexpr uint32_t kWords[] = {0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF};

template <typename Element>
class StochasticRoundingTest : public testing::Test {};
using Elements = testing::Types<Float4E2M1, Float8E4M3, Float8E5M2>;
TYPED_TEST_SUITE(StochasticRoundingTest, Elements);

template <typename Element>
double ValueOf(uint32_t code) {
  return SmallFloatReference(Element::kMantissaBits, Element::kBias, Element::kMaxCode).Value(code);
}

// A number strictly between codes `code` and `code + 1`.
float Between(double lower, double upper, std::mt19937_64& random) {
  const double fraction = static_cast<double>(random() % 0xFFFF + 1) / 0x10000;
  return static_cast<float>(lower + (upper - lower) * fraction);
}

TYPED_TEST(StochasticRoundingTest, WhatIsACodeNeverMoves) {
  for (uint32_t code = 0; code <= TypeParam::kMaxCode; ++code) {
    const float value = static_cast<float>(ValueOf<TypeParam>(code));
    for (const uint32_t word : kWords) {
      EXPECT_EQ(RoundStochastically<TypeParam>(value, word).bits, code);
      EXPECT_EQ(RoundStochastically<TypeParam>(-value, word).bits, code | TypeParam::kSignBit);
    }
  }
}

TYPED_TEST(StochasticRoundingTest, OnlyTheTwoNeighboursAreMadeAndBothAre) {
  std::mt19937_64 random(TestSeed());
  for (uint32_t code = 0; code < TypeParam::kMaxCode; ++code) {
    const float value = Between(ValueOf<TypeParam>(code), ValueOf<TypeParam>(code + 1), random);
    std::set<uint32_t> made;
    for (const uint32_t word : kWords) {
      made.insert(RoundStochastically<TypeParam>(value, word).bits);
      EXPECT_EQ(RoundStochastically<TypeParam>(-value, word).bits,
                RoundStochastically<TypeParam>(value, word).bits | TypeParam::kSignBit);
    }
    EXPECT_EQ(made, (std::set<uint32_t>{code, code + 1})) << value;
  }
}

// The exact count of words that round up, found by bisection: they are the ones
// below a limit.
TYPED_TEST(StochasticRoundingTest, ExactlyTheShareOfTheDistanceRoundsUp) {
  std::mt19937_64 random(TestSeed());
  for (int i = 0; i < 2000; ++i) {
    const uint32_t code = static_cast<uint32_t>(random() % TypeParam::kMaxCode);
    const double lower = ValueOf<TypeParam>(code);
    const double upper = ValueOf<TypeParam>(code + 1);
    const float value = Between(lower, upper, random);
    uint64_t limit = 0;
    for (uint64_t step = uint64_t{1} << 31; step > 0; step /= 2) {
      const uint32_t word = static_cast<uint32_t>(limit + step - 1);
      if (RoundStochastically<TypeParam>(value, word).bits == code + 1) limit += step;
    }
    EXPECT_EQ(static_cast<double>(limit), std::floor((value - lower) / (upper - lower) * 0x1p32))
        << std::hexfloat << value;
  }
}

TYPED_TEST(StochasticRoundingTest, SaturatesAndTreatsNanAsNearestDoes) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float above = std::nextafterf(TypeParam::kMax, kInfinity);
  for (const uint32_t word : kWords) {
    for (const float value : {above, 2 * TypeParam::kMax, kInfinity}) {
      EXPECT_EQ(RoundStochastically<TypeParam>(value, word).bits, TypeParam::kMaxCode);
      EXPECT_EQ(RoundStochastically<TypeParam>(-value, word).bits,
                TypeParam::kMaxCode | TypeParam::kSignBit);
    }
    EXPECT_EQ(RoundStochastically<TypeParam>(kCanonicalNan, word),
              TypeParam::FromFloat(kCanonicalNan));
  }
}

// Of `count` independent events of one probability, the number that happen is
// further from its mean than sqrt(count * ln(2 / risk) / 2) with a probability
// below `risk` (Hoeffding).
double Deviation(int count, double risk) { return std::sqrt(count * std::log(2 / risk) / 2); }

TYPED_TEST(StochasticRoundingTest, TheMeanOfManyElementsIsTheirValue) {
  constexpr int kCount = 100000;
  std::mt19937_64 random(TestSeed());
  for (int i = 0; i < 20; ++i) {
    const StochasticWords words({random(), random(), random()}, static_cast<uint32_t>(i % 2));
    const uint32_t code = static_cast<uint32_t>(random() % TypeParam::kMaxCode);
    const double lower = ValueOf<TypeParam>(code);
    const double step = ValueOf<TypeParam>(code + 1) - lower;
    const float value = Between(lower, lower + step, random);
    double sum = 0;
    for (uint64_t element = 0; element < kCount; ++element) {
      sum +=
          static_cast<double>(RoundStochastically<TypeParam>(value, words.Of(element)).ToFloat());
    }
    EXPECT_NEAR(sum / kCount, value, step * (Deviation(kCount, 1e-12) / kCount + 0x1p-32))
        << "between code " << code << " and the next";
  }
}

TEST(StochasticWordsTest, AWordDependsOnEveryPartOfTheKey) {
  const StochasticKey key = {1, 2, 3};
  std::set<uint32_t> words;
  int count = 0;
  const auto add = [&](const StochasticKey& varied, uint32_t plane, uint64_t element) {
    words.insert(StochasticWords(varied, plane).Of(element));
    ++count;
  };
  add(key, 0, 5);
  add(key, 1, 5);
  add(key, 0, 6);
  add(key, 0, 5 + (uint64_t{1} << 40));
  for (const uint64_t other : {uint64_t{9}, uint64_t{1} << 40}) {
    add({other, 2, 3}, 0, 5);
    add({1, other, 3}, 0, 5);
    add({1, 2, other}, 0, 5);
  }
  EXPECT_EQ(words.size(), static_cast<size_t>(count));
}

TEST(StochasticWordsTest, WordsDoNotDependOnWhatElseIsAskedFor) {
  const StochasticWords words({7, 8, 9}, 1);
  for (uint64_t group = 0; group < 100; ++group) {
    const PhiloxBlock four = words.OfFour(group);
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(StochasticWords({7, 8, 9}, 1).Of(4 * group + i), four[i]);
    }
  }
}

}  // namespace
}  // namespace planewise
