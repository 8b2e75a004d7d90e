#ifndef PLANEWISE_SERVICE_SESSION_CHUNK_COPY_H_
#define PLANEWISE_SERVICE_SESSION_CHUNK_COPY_H_
// The copying that a chunk of input bytes asks for, apart from the decision where
// they go: so that it may run on another thread than the session's.
//
// Not here: which bytes go where (operation_assembly.h), threads (session.cc).

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "core/tensor/host_buffer.h"

namespace planewise {

// Where the inputs of an admitted operation come to lie.
struct AssembledInputs {
  std::vector<HostBuffer> tensors;
  int open_copies = 0;  // parts of copies that are not finished; the session's thread
};

// Bytes that have no other copy yet, and the places that wait for them. Shares no
// place with an operation that was dropped. Run() is for any thread, and copies
// of several chunks may run at once; the rest is for the session's thread.
class ChunkCopy {
 public:
  int64_t size_bytes() const { return size_bytes_; }

  // `bytes` are to be written at `offset` of the tensors laid end to end, where
  // no other copy writes.
  void Add(const std::shared_ptr<AssembledInputs>& inputs, uint64_t offset,
           absl::Span<const std::byte> bytes);
  // Once, while the bytes are where they were. A dropped operation is passed over.
  void Run() const;
  // Once, after Run().
  void Finish() const;

 private:
  struct Part {
    std::weak_ptr<AssembledInputs> inputs;
    uint64_t offset = 0;
    absl::Span<const std::byte> bytes;
  };

  std::vector<Part> parts_;
  int64_t size_bytes_ = 0;
};

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_SESSION_CHUNK_COPY_H_
