#ifndef PLANEWISE_CORE_CHECKPOINT_STREAMING_CHECKSUM_H_
#define PLANEWISE_CORE_CHECKPOINT_STREAMING_CHECKSUM_H_
// XXH3, 64 bits, of bytes that come in pieces: the store's checksum.

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/types/span.h"

struct XXH3_state_s;

namespace planewise {

// One thread.
class StreamingChecksum {
 public:
  StreamingChecksum();

  void Update(absl::Span<const std::byte> bytes);
  uint64_t Finish() const;

 private:
  struct Free {
    void operator()(XXH3_state_s* state) const;
  };
  const std::unique_ptr<XXH3_state_s, Free> state_;
};

uint64_t ChecksumOf(absl::Span<const std::byte> bytes);

}  // namespace planewise

#endif  // PLANEWISE_CORE_CHECKPOINT_STREAMING_CHECKSUM_H_
