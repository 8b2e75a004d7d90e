#include "core/numeric/default_float_environment.h"

#include <cfenv>
#include <limits>

#include "gtest/gtest.h"

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace planewise {
namespace {

// Computed at run time, in the mode of the moment.
float OneAndABit() {
  volatile float bit = 0x1p-30f;
  return 1.0f + bit;
}

float HalfTheSmallestNormal() {
  volatile float smallest = std::numeric_limits<float>::min();
  return smallest / 2;
}

TEST(DefaultFloatEnvironmentTest, RoundsToNearestAndRestoresTheCallersMode) {
  std::fesetround(FE_UPWARD);
  EXPECT_GT(OneAndABit(), 1.0f);
  {
    const DefaultFloatEnvironment environment;
    EXPECT_EQ(OneAndABit(), 1.0f);
  }
  EXPECT_GT(OneAndABit(), 1.0f);
  std::fesetround(FE_TONEAREST);
}

#if defined(__SSE__)
TEST(DefaultFloatEnvironmentTest, KeepsSubnormalsWhereTheCallerFlushesThem) {
  constexpr unsigned kFlushToZeroAndSubnormalsAreZero = 0x8040;
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | kFlushToZeroAndSubnormalsAreZero);
  EXPECT_EQ(HalfTheSmallestNormal(), 0.0f);
  {
    const DefaultFloatEnvironment environment;
    EXPECT_GT(HalfTheSmallestNormal(), 0.0f);
  }
  EXPECT_EQ(HalfTheSmallestNormal(), 0.0f);
  _mm_setcsr(before);
}
#endif

}  // namespace
}  // namespace planewise
