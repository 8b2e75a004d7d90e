#include "service/session/chunk_copy.h"

#include <algorithm>
#include <cstring>

namespace planewise {
namespace {

// Writes `bytes` at `offset` of the tensors laid end to end.
void WriteAt(std::vector<HostBuffer>& tensors, uint64_t offset,
             absl::Span<const std::byte> bytes) {
  for (HostBuffer& tensor : tensors) {
    const auto size = static_cast<uint64_t>(tensor.size_bytes());
    if (offset >= size) {
      offset -= size;
      continue;
    }
    const size_t part = std::min<size_t>(bytes.size(), size - offset);
    std::memcpy(tensor.data() + offset, bytes.data(), part);
    bytes.remove_prefix(part);
    if (bytes.empty()) return;
    offset = 0;
  }
}

}  // namespace

void ChunkCopy::Add(const std::shared_ptr<AssembledInputs>& inputs, uint64_t offset,
                    absl::Span<const std::byte> bytes) {
  parts_.push_back({inputs, offset, bytes});
  size_bytes_ += static_cast<int64_t>(bytes.size());
  ++inputs->open_copies;
}

void ChunkCopy::Run() const {
  for (const Part& part : parts_) {
    if (const auto inputs = part.inputs.lock()) {
      WriteAt(inputs->tensors, part.offset, part.bytes);
    }
  }
}

void ChunkCopy::Finish() const {
  for (const Part& part : parts_) {
    if (const auto inputs = part.inputs.lock()) --inputs->open_copies;
  }
}

}  // namespace planewise
