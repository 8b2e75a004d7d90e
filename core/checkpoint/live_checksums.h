#ifndef PLANEWISE_CORE_CHECKPOINT_LIVE_CHECKSUMS_H_
#define PLANEWISE_CORE_CHECKPOINT_LIVE_CHECKSUMS_H_
// Checksums of a model in memory, so that what is loaded can be compared with
// what the store's manifest says.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/checkpoint/manifest.h"
#include "core/checkpoint/transfer.h"
#include "core/layer/model_version.h"

namespace planewise {

struct LiveChecksum {
  std::string part;  // as in a segment, for example "layers.0.q.weight#row.payload"
  int64_t length = 0;
  uint64_t checksum = 0;  // XXH3, 64 bits

  bool operator==(const LiveChecksum&) const = default;
};

// One per payload and scale array, in the order of layers. CANCELLED.
absl::StatusOr<std::vector<LiveChecksum>> LiveChecksums(const ModelVersion& version,
                                                        const TransferControl& control);

// What differs between `live` and the manifest's parts, one line each; empty if
// they are equal.
std::vector<std::string> CompareWithManifest(const std::vector<LiveChecksum>& live,
                                             const Manifest& manifest);

}  // namespace planewise

#endif  // PLANEWISE_CORE_CHECKPOINT_LIVE_CHECKSUMS_H_
