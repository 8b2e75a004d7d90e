#ifndef PLANEWISE_CORE_TENSOR_BLOCK_CACHE_H_
#define PLANEWISE_CORE_TENSOR_BLOCK_CACHE_H_
// Host memory in blocks. Large ones that are given back are handed out again
// before the system is asked for new ones: the first touch of a new page costs
// several times what filling it does, and every operation of a session needs
// blocks of the sizes that the one before gave back.
//
// Not here: who may have how much (memory_budget.h).

#include <cstddef>
#include <cstdint>
#include <list>

#include "core/base/mutex.h"

namespace planewise {

// Start of every block: a cache line, and a full AVX-512 register.
inline constexpr int64_t kHostAlignmentBytes = 64;

struct MemoryBlock {
  std::byte* data = nullptr;
  int64_t capacity_bytes = 0;  // at least what was asked for
};

// Thread-safe.
class BlockCache {
 public:
  // Keeps at most `kept_bytes_max` of blocks that nobody uses.
  explicit BlockCache(int64_t kept_bytes_max) : kept_bytes_max_(kept_bytes_max) {}
  ~BlockCache();

  // A block for `size_bytes` > 0, with whatever it held. data is nullptr if the
  // system has none.
  MemoryBlock Take(int64_t size_bytes);
  void Give(MemoryBlock block);

  // Gives kept blocks back to the system, longest kept first, until at most
  // `bytes` are kept.
  void TrimTo(int64_t bytes);
  int64_t kept_bytes() const;

 private:
  void TrimLocked(int64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int64_t kept_bytes_max_;
  mutable Mutex mutex_;
  std::list<MemoryBlock> kept_ ABSL_GUARDED_BY(mutex_);  // newest first
  int64_t kept_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace planewise

#endif  // PLANEWISE_CORE_TENSOR_BLOCK_CACHE_H_
