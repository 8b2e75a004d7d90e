#include "tests/testing/seed.h"

#include "gtest/gtest.h"

namespace planewise {
namespace {

TEST(SeedTest, IsOneNumberForTheWholeProcess) { EXPECT_EQ(TestSeed(), TestSeed()); }

TEST(SeedTest, ParsesWholeDecimalNumbersOnly) {
  EXPECT_EQ(ParseSeed("0"), 0u);
  EXPECT_EQ(ParseSeed("18446744073709551615"), ~uint64_t{0});
  for (const char* text : {"", "x", "12x", "-1", "1.5", "18446744073709551616"}) {
    EXPECT_EQ(ParseSeed(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace planewise
