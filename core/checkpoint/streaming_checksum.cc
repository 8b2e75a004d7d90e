#include "core/checkpoint/streaming_checksum.h"

#include <xxhash.h>
#if defined(__x86_64__)
// Lets the library pick the widest registers of the machine it runs on: three
// to five times the rate of its x86-64 baseline, which is slower than disks.
#include <xxh_x86dispatch.h>
#endif

namespace planewise {

StreamingChecksum::StreamingChecksum() : state_(XXH3_createState()) {
  XXH3_64bits_reset(state_.get());
}

void StreamingChecksum::Update(absl::Span<const std::byte> bytes) {
  XXH3_64bits_update(state_.get(), bytes.data(), bytes.size());
}

uint64_t StreamingChecksum::Finish() const { return XXH3_64bits_digest(state_.get()); }

void StreamingChecksum::Free::operator()(XXH3_state_s* state) const { XXH3_freeState(state); }

uint64_t ChecksumOf(absl::Span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

}  // namespace planewise
