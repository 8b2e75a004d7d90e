#include "core/tensor/block_cache.h"

#include <cstdint>
#include <cstring>

#include "gtest/gtest.h"

namespace planewise {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

TEST(BlockCacheTest, LargeBlocksAreHandedOutAgain) {
  BlockCache cache(64 * kMiB);
  const MemoryBlock first = cache.Take(8 * kMiB);
  ASSERT_NE(first.data, nullptr);
  std::memset(first.data, 1, 8 * kMiB);
  cache.Give(first);
  EXPECT_EQ(cache.kept_bytes(), 8 * kMiB);
  // A little smaller is served too, a lot smaller is not.
  const MemoryBlock second = cache.Take(7 * kMiB);
  EXPECT_EQ(second.data, first.data);
  EXPECT_EQ(second.capacity_bytes, 8 * kMiB);
  EXPECT_EQ(cache.kept_bytes(), 0);
  cache.Give(second);
  const MemoryBlock third = cache.Take(7 * kMiB - 64);
  EXPECT_NE(third.data, first.data);
  EXPECT_EQ(cache.kept_bytes(), 8 * kMiB);
  cache.Give(third);
}

TEST(BlockCacheTest, NeverServesMoreThanABlockHolds) {
  BlockCache cache(64 * kMiB);
  cache.Give(cache.Take(8 * kMiB));
  const MemoryBlock larger = cache.Take(8 * kMiB + 1);
  EXPECT_GE(larger.capacity_bytes, 8 * kMiB + 1);
  EXPECT_EQ(cache.kept_bytes(), 8 * kMiB);
  cache.Give(larger);
}

TEST(BlockCacheTest, SmallBlocksAreNotKept) {
  BlockCache cache(64 * kMiB);
  cache.Give(cache.Take(kMiB - 64));
  EXPECT_EQ(cache.kept_bytes(), 0);
}

TEST(BlockCacheTest, KeepsNoMoreThanItsLimit) {
  BlockCache cache(20 * kMiB);
  const MemoryBlock first = cache.Take(8 * kMiB);
  const MemoryBlock second = cache.Take(8 * kMiB);
  const MemoryBlock third = cache.Take(8 * kMiB);
  cache.Give(first);
  cache.Give(second);
  cache.Give(third);
  EXPECT_EQ(cache.kept_bytes(), 16 * kMiB);
  // The newest is the one whose pages are still in a cache.
  const MemoryBlock newest = cache.Take(8 * kMiB);
  EXPECT_EQ(newest.data, third.data);
  cache.Give(newest);
  cache.Give(cache.Take(24 * kMiB));
  EXPECT_EQ(cache.kept_bytes(), 16 * kMiB);
  cache.TrimTo(8 * kMiB);
  EXPECT_EQ(cache.kept_bytes(), 8 * kMiB);
  cache.TrimTo(0);
  EXPECT_EQ(cache.kept_bytes(), 0);
}

TEST(BlockCacheTest, BlocksAreAligned) {
  BlockCache cache(0);
  for (const int64_t size_bytes : {int64_t{1}, int64_t{65}, kMiB + 1, 2 * kMiB + 1}) {
    const MemoryBlock block = cache.Take(size_bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block.data) % kHostAlignmentBytes, 0u);
    EXPECT_GE(block.capacity_bytes, size_bytes);
    std::memset(block.data, 1, static_cast<size_t>(block.capacity_bytes));
    cache.Give(block);
  }
}

}  // namespace
}  // namespace planewise
