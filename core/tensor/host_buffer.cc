#include "core/tensor/host_buffer.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"

namespace planewise {

absl::StatusOr<HostBuffer> HostBuffer::AllocateUninitialized(MemoryBudget& budget, MemoryUse use,
                                                             int64_t size_bytes,
                                                             absl::string_view what) {
  HostBuffer buffer;
  PW_ASSIGN_OR_RETURN(buffer.reservation_, budget.Reserve(use, size_bytes, what));
  if (size_bytes == 0) return buffer;
  std::shared_ptr<BlockCache> blocks = budget.blocks();
  const MemoryBlock block = blocks->Take(size_bytes);
  if (block.data == nullptr) {
    return Error(Reason::kMemoryShortfall,
                 absl::StrCat(what, ": the system refused ", size_bytes, " bytes"))
        .With("requiredBytes", size_bytes);
  }
  buffer.data_ = {block.data, Free{std::move(blocks), block.capacity_bytes}};
  return buffer;
}

absl::StatusOr<HostBuffer> HostBuffer::Allocate(MemoryBudget& budget, MemoryUse use,
                                                int64_t size_bytes, absl::string_view what) {
  PW_ASSIGN_OR_RETURN(HostBuffer buffer, AllocateUninitialized(budget, use, size_bytes, what));
  if (size_bytes > 0) std::memset(buffer.data(), 0, static_cast<size_t>(size_bytes));
  return buffer;
}

}  // namespace planewise
