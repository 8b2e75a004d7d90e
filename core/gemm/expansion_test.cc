#include "core/gemm/expansion.h"

#include <cmath>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"

namespace planewise {

void PrintTo(const Expansion& expansion, std::ostream* out) {
  *out << "kind " << static_cast<int>(expansion.kind) << " shifts " << expansion.shift_a << " "
       << expansion.shift_b;
}

namespace {

constexpr DType kE4M3 = DType::kF8E4M3;
constexpr DType kE5M2 = DType::kF8E5M2;
constexpr ExponentRange kOrdinary = {110, 125};

ExponentRange Only(int b) { return {b, b}; }

struct Case {
  absl::string_view name;
  std::optional<ExponentRange> a;
  DType element_a;
  std::optional<ExponentRange> b;
  int64_t k;
  ExpansionKind want;
};

const Case kCases[] = {
    {"ordinary codes", kOrdinary, kE4M3, kOrdinary, 4096, ExpansionKind::kPlain},
    {"zeros in A", std::nullopt, kE4M3, kOrdinary, 32, ExpansionKind::kPlain},
    {"zeros in B", kOrdinary, kE4M3, std::nullopt, 32, ExpansionKind::kPlain},
    {"zeros in B, A out of range", Only(2), kE4M3, std::nullopt, 32, ExpansionKind::kShifted},
    {"A exact only as BF16 subnormals, lowest", Only(3), kE4M3, kOrdinary, 32,
     ExpansionKind::kShifted},
    {"A below BF16", Only(2), kE4M3, kOrdinary, 32, ExpansionKind::kShifted},
    // Products with 2^-9 at scale 127 + 9 = 136 are no smaller than A itself.
    {"A normal at the lowest scale", Only(10), kE4M3, Only(136), 32, ExpansionKind::kPlain},
    {"A one below the lowest scale", Only(9), kE4M3, Only(136), 32, ExpansionKind::kShifted},
    {"A normal, but products are not", Only(10), kE4M3, Only(135), 32, ExpansionKind::kShifted},
    {"A at the highest scale, sums fit", Only(246), kE4M3, Only(112), 32, ExpansionKind::kPlain},
    {"A at the highest scale, sums may overflow", Only(246), kE4M3, Only(113), 32,
     ExpansionKind::kShifted},
    {"longer sums overflow sooner", Only(246), kE4M3, Only(112), 64, ExpansionKind::kShifted},
    {"A one above the highest scale", Only(247), kE4M3, Only(100), 32, ExpansionKind::kShifted},
    {"A at scale 254", Only(254), kE4M3, kOrdinary, 4096, ExpansionKind::kShifted},
    {"A at scale 0", Only(0), kE4M3, kOrdinary, 4096, ExpansionKind::kShifted},
    {"a NaN scale beside ordinary ones", ExponentRange{110, 255}, kE4M3, kOrdinary, 4096,
     ExpansionKind::kShifted},
    {"A spans more than BF16 has", ExponentRange{2, 254}, kE4M3, kOrdinary, 32,
     ExpansionKind::kWide},
    {"A and B together span more than F32 products have", ExponentRange{20, 130}, kE4M3,
     ExponentRange{20, 140}, 4096, ExpansionKind::kWide},
    {"B below BF16", kOrdinary, kE4M3, Only(9), 32, ExpansionKind::kShifted},
    {"B above BF16", kOrdinary, kE4M3, Only(247), 32, ExpansionKind::kShifted},
    {"B spans more than BF16 has", kOrdinary, kE4M3, ExponentRange{2, 254}, 32,
     ExpansionKind::kWide},
    {"E5M2 normal at its lowest scale", Only(17), kE5M2, Only(136), 32, ExpansionKind::kPlain},
    {"E5M2 one below it", Only(16), kE5M2, Only(136), 32, ExpansionKind::kShifted},
    {"E5M2 at its highest scale", Only(239), kE5M2, Only(112), 32, ExpansionKind::kPlain},
    {"E5M2 one above it", Only(240), kE5M2, Only(100), 32, ExpansionKind::kShifted},
};

TEST(ExpansionTest, ChoosesByRange) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(std::string(c.name));
    EXPECT_EQ(ChooseExpansion(c.a, c.element_a, c.b, kE4M3, c.k).kind, c.want);
  }
}

// The smallest and largest non-zero magnitudes of a block, as powers of two.
double Smallest(int b, DType element) {
  return std::ldexp(1.0, b - 127 - (element == kE4M3 ? 9 : 16));
}
double Largest(int b, DType element) {
  return std::ldexp(element == kE4M3 ? 448.0 : 57344.0, b - 127);
}

// Over every pair of single scales: what is chosen satisfies the conditions in
// expansion.h, computed here from the codes themselves, and one operand's
// single scale can always be placed.
TEST(ExpansionTest, WhatIsChosenLosesNothing) {
  constexpr double kMinNormal = 0x1p-126;
  constexpr double kMaxBf16 = 0x1.FEp127;
  constexpr double kMaxF32 = 0x1.FFFFFEp127;
  constexpr int64_t k = 4096;
  for (const DType element : {kE4M3, kE5M2}) {
    for (int a = 0; a <= 254; ++a) {
      for (int b = 0; b <= 254; ++b) {
        const Expansion e = ChooseExpansion(Only(a), element, Only(b), kE4M3, k);
        ASSERT_NE(e.kind, ExpansionKind::kWide) << "a " << a << " b " << b;
        const double low_a = std::ldexp(Smallest(a, element), e.shift_a);
        const double high_a = std::ldexp(Largest(a, element), e.shift_a);
        const double low_b = std::ldexp(Smallest(b, kE4M3), e.shift_b);
        const double high_b = std::ldexp(Largest(b, kE4M3), e.shift_b);
        ASSERT_GE(low_a, kMinNormal) << "a " << a << " b " << b;
        ASSERT_GE(low_b, kMinNormal) << "a " << a << " b " << b;
        ASSERT_LE(high_a, kMaxBf16) << "a " << a << " b " << b;
        ASSERT_LE(high_b, kMaxBf16) << "a " << a << " b " << b;
        ASSERT_GE(low_a * low_b, kMinNormal) << "a " << a << " b " << b;
        ASSERT_LE(static_cast<double>(k) * high_a * high_b * (1 + 0x1p-10), kMaxF32)
            << "a " << a << " b " << b;
      }
    }
  }
}

TEST(ExpansionTest, BsShiftDoesNotDependOnA) {
  for (int low = 0; low <= 254; low += 2) {
    for (int high = low; high <= 254; high += 3) {
      const ExponentRange b{low, high};
      const Expansion alone = ChooseExpansion(std::nullopt, kE4M3, b, kE4M3, 4096);
      for (const int a : {0, 3, 10, 100, 127, 200, 246, 254}) {
        const Expansion e = ChooseExpansion(Only(a), kE4M3, b, kE4M3, 4096);
        if (e.kind == ExpansionKind::kWide) continue;
        ASSERT_EQ(e.shift_b, alone.shift_b) << "b " << low << " to " << high << ", a " << a;
      }
    }
  }
}

TEST(ExpansionTest, KnowsWhichValuesAreExact) {
  EXPECT_TRUE(ValuesAreExact(std::nullopt, kE4M3, DType::kF16));
  EXPECT_TRUE(ValuesAreExact(ExponentRange{10, 246}, kE4M3, DType::kBF16));
  EXPECT_FALSE(ValuesAreExact(ExponentRange{9, 246}, kE4M3, DType::kBF16));
  EXPECT_FALSE(ValuesAreExact(ExponentRange{10, 247}, kE4M3, DType::kF32));
  // F16: 2^-9 * 2^(112 - 127) = 2^-24, and 448 * 2^(134 - 127) = 57344.
  EXPECT_TRUE(ValuesAreExact(ExponentRange{112, 134}, kE4M3, DType::kF16));
  EXPECT_FALSE(ValuesAreExact(ExponentRange{111, 134}, kE4M3, DType::kF16));
  EXPECT_FALSE(ValuesAreExact(ExponentRange{112, 135}, kE4M3, DType::kF16));
}

}  // namespace
}  // namespace planewise
