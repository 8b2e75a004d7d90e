#include "core/tensor/host_buffer.h"

#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"

namespace planewise {

void HostBuffer::Free::operator()(std::byte* data) const { std::free(data); }

absl::StatusOr<HostBuffer> HostBuffer::AllocateUninitialized(MemoryBudget& budget, MemoryUse use,
                                                             int64_t size_bytes,
                                                             absl::string_view what) {
  HostBuffer buffer;
  PW_ASSIGN_OR_RETURN(buffer.reservation_, budget.Reserve(use, size_bytes, what));
  if (size_bytes == 0) return buffer;
  const int64_t rounded = RoundUp(size_bytes, static_cast<int64_t>(kHostAlignmentBytes));
  buffer.data_.reset(static_cast<std::byte*>(
      std::aligned_alloc(kHostAlignmentBytes, static_cast<size_t>(rounded))));
  if (buffer.data_ == nullptr) {
    return Error(Reason::kMemoryShortfall,
                 absl::StrCat(what, ": the system refused ", size_bytes, " bytes"))
        .With("requiredBytes", size_bytes);
  }
  return buffer;
}

absl::StatusOr<HostBuffer> HostBuffer::Allocate(MemoryBudget& budget, MemoryUse use,
                                                int64_t size_bytes, absl::string_view what) {
  PW_ASSIGN_OR_RETURN(HostBuffer buffer, AllocateUninitialized(budget, use, size_bytes, what));
  if (size_bytes > 0) std::memset(buffer.data(), 0, static_cast<size_t>(size_bytes));
  return buffer;
}

}  // namespace planewise
