#ifndef PLANEWISE_CORE_CHECKPOINT_LIVE_PARTS_H_
#define PLANEWISE_CORE_CHECKPOINT_LIVE_PARTS_H_
// The arrays of a version in memory, as the store names them, and the manifest
// that describes them.
//
// Not here: writing them (segment_writer.h).

#include <cstddef>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "core/checkpoint/manifest.h"
#include "core/checkpoint/safetensors_writer.h"
#include "core/layer/model_version.h"
#include "core/tensor/primary_weight.h"

namespace planewise {

// Pointers into the version.
struct LivePart {
  const PrimaryWeight* weight = nullptr;
  const Plane* plane = nullptr;
  PlanePart part = PlanePart::kPayload;

  std::string name() const;
  absl::Span<const std::byte> bytes() const;
  // As a tensor of a segment, in types that every reader of safetensors knows:
  // scales of one byte and packed elements are U8.
  SafetensorsTensor tensor() const;
};

// In the order of Manifest::Parts.
std::vector<LivePart> LivePartsOf(const ModelVersion& version);

// What the parts of a version became on disk.
struct StoredParts {
  std::vector<StoredSegment> segments;
  absl::flat_hash_map<std::string, StoredPart> by_name;
};

// `stored` has every part of `version`.
Manifest DescribeVersion(const ModelVersion& version, const std::vector<std::string>& request_ids,
                         const StoredParts& stored);

}  // namespace planewise

#endif  // PLANEWISE_CORE_CHECKPOINT_LIVE_PARTS_H_
