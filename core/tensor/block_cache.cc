#include "core/tensor/block_cache.h"

#include <sanitizer/asan_interface.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>

#include "core/base/checked_math.h"

namespace planewise {
namespace {

// Smaller blocks come from and go to malloc, which keeps them itself.
constexpr int64_t kKeptBlockBytesMin = int64_t{1} << 20;
constexpr int64_t kHugePageBytes = int64_t{2} << 20;

// A kept block serves requests down to 7/8 of its size, so that sizes which vary
// a little, as token counts do, find one another's blocks.
bool Serves(const MemoryBlock& block, int64_t size_bytes) {
  return block.capacity_bytes >= size_bytes &&
         block.capacity_bytes - size_bytes <= block.capacity_bytes / 8;
}

MemoryBlock Allocate(int64_t size_bytes) {
  const bool huge = size_bytes >= kHugePageBytes;
  const int64_t alignment = huge ? kHugePageBytes : kHostAlignmentBytes;
  const int64_t capacity = RoundUp(size_bytes, kHostAlignmentBytes);
  void* data = nullptr;
  if (posix_memalign(&data, static_cast<size_t>(alignment), static_cast<size_t>(capacity)) != 0) {
    return {};
  }
  // A wish: 512 times fewer first touches. The tail stays in small pages.
  if (huge) madvise(data, static_cast<size_t>(capacity / kHugePageBytes * kHugePageBytes),
                    MADV_HUGEPAGE);
  return {static_cast<std::byte*>(data), capacity};
}

}  // namespace

BlockCache::~BlockCache() { TrimTo(0); }

MemoryBlock BlockCache::Take(int64_t size_bytes) {
  if (size_bytes >= kKeptBlockBytesMin) {
    MutexLock lock(mutex_);
    const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const MemoryBlock& block) {
      return Serves(block, size_bytes);
    });
    if (found != kept_.end()) {
      const MemoryBlock block = *found;
      kept_.erase(found);
      kept_bytes_ -= block.capacity_bytes;
      ASAN_UNPOISON_MEMORY_REGION(block.data, static_cast<size_t>(block.capacity_bytes));
      return block;
    }
  }
  return Allocate(size_bytes);
}

void BlockCache::Give(MemoryBlock block) {
  if (block.capacity_bytes < kKeptBlockBytesMin || block.capacity_bytes > kept_bytes_max_) {
    std::free(block.data);
    return;
  }
  MutexLock lock(mutex_);
  TrimLocked(kept_bytes_max_ - block.capacity_bytes);
  kept_.push_front(block);
  kept_bytes_ += block.capacity_bytes;
  // Whoever still uses it is wrong, and ASan is to say so.
  ASAN_POISON_MEMORY_REGION(block.data, static_cast<size_t>(block.capacity_bytes));
}

void BlockCache::TrimTo(int64_t bytes) {
  MutexLock lock(mutex_);
  TrimLocked(bytes);
}

void BlockCache::TrimLocked(int64_t bytes) {
  while (kept_bytes_ > bytes) {
    const MemoryBlock block = kept_.back();
    kept_.pop_back();
    kept_bytes_ -= block.capacity_bytes;
    ASAN_UNPOISON_MEMORY_REGION(block.data, static_cast<size_t>(block.capacity_bytes));
    std::free(block.data);
  }
}

int64_t BlockCache::kept_bytes() const {
  MutexLock lock(mutex_);
  return kept_bytes_;
}

}  // namespace planewise
