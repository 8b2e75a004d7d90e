#include "service/session/byte_ranges.h"

#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/seed.h"

namespace planewise {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ByteRangesTest, ReturnsOnlyWhatIsNew) {
  ByteRanges ranges;
  EXPECT_THAT(ranges.Add({10, 20}), ElementsAre(ByteRange{10, 20}));
  EXPECT_THAT(ranges.Add({30, 40}), ElementsAre(ByteRange{30, 40}));
  EXPECT_THAT(ranges.Add({12, 18}), IsEmpty());
  EXPECT_THAT(ranges.Add({5, 45}),
              ElementsAre(ByteRange{5, 10}, ByteRange{20, 30}, ByteRange{40, 45}));
  EXPECT_THAT(ranges.Add({7, 7}), IsEmpty());
  EXPECT_EQ(ranges.total(), 40u);
  EXPECT_EQ(ranges.count(), 1);
}

TEST(ByteRangesTest, BytesInOrderAreOneRange) {
  ByteRanges ranges;
  for (uint64_t i = 0; i < 1000; ++i) ranges.Add({i, i + 1});
  EXPECT_EQ(ranges.count(), 1);
  EXPECT_EQ(ranges.total(), 1000u);
}

TEST(ByteRangesTest, AgreesWithABitmap) {
  constexpr uint64_t kPositions = 64;
  std::mt19937_64 bits(TestSeed());
  for (int round = 0; round < 1000; ++round) {
    ByteRanges ranges;
    std::vector<bool> model(kPositions);
    for (int i = 0; i < 20; ++i) {
      const uint64_t begin = bits() % kPositions;
      const uint64_t end = begin + bits() % (kPositions - begin + 1);
      std::vector<bool> added(kPositions);
      for (const ByteRange& part : ranges.Add({begin, end})) {
        for (uint64_t p = part.begin; p < part.end; ++p) {
          ASSERT_FALSE(added[p]);
          added[p] = true;
        }
      }
      uint64_t total = 0;
      for (uint64_t p = 0; p < kPositions; ++p) {
        const bool inside = begin <= p && p < end;
        ASSERT_EQ(added[p], inside && !model[p]) << p;
        model[p] = model[p] || inside;
        total += model[p] ? 1 : 0;
      }
      ASSERT_EQ(ranges.total(), total);
    }
  }
}

}  // namespace
}  // namespace planewise
