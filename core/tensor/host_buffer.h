#ifndef PLANEWISE_CORE_TENSOR_HOST_BUFFER_H_
#define PLANEWISE_CORE_TENSOR_HOST_BUFFER_H_
// Owning, aligned, zeroed host memory that a MemoryBudget has admitted.

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/tensor/block_cache.h"
#include "core/tensor/memory_budget.h"

namespace planewise {

// Movable. Thread-compatible.
class HostBuffer {
 public:
  HostBuffer() = default;

  // `size_bytes` zeroed bytes. RESOURCE_EXHAUSTED as MemoryBudget::Reserve.
  static absl::StatusOr<HostBuffer> Allocate(MemoryBudget& budget, MemoryUse use,
                                             int64_t size_bytes, absl::string_view what);
  // As Allocate, but the bytes are whatever the memory held: for buffers that
  // are written whole before they are read.
  static absl::StatusOr<HostBuffer> AllocateUninitialized(MemoryBudget& budget, MemoryUse use,
                                                          int64_t size_bytes,
                                                          absl::string_view what);

  std::byte* data() { return data_.get(); }
  const std::byte* data() const { return data_.get(); }
  int64_t size_bytes() const { return reservation_.size_bytes(); }
  absl::Span<const std::byte> bytes() const {
    return {data(), static_cast<size_t>(size_bytes())};
  }
  absl::Span<std::byte> mutable_bytes() { return {data(), static_cast<size_t>(size_bytes())}; }

  // Counts the buffer under another use from now on.
  void ChargeTo(MemoryUse use) { reservation_.ChargeTo(use); }

 private:
  struct Free {
    std::shared_ptr<BlockCache> blocks;
    int64_t capacity_bytes;
    void operator()(std::byte* data) const { blocks->Give({data, capacity_bytes}); }
  };

  Reservation reservation_;
  std::unique_ptr<std::byte, Free> data_;
};

}  // namespace planewise

#endif  // PLANEWISE_CORE_TENSOR_HOST_BUFFER_H_
