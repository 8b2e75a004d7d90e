#include "core/checkpoint/version_loader.h"

#include <algorithm>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/segment_reader.h"
#include "core/tensor/plane_layout.h"
#include "core/tensor/primary_weight.h"

namespace planewise {
namespace {

struct PartRead {
  StoredPartView part;
  absl::Span<std::byte> destination;
};

// Allocates what a manifest describes and lists what must be read into it.
class Allocation {
 public:
  Allocation(const Manifest& manifest, MemoryBudget& budget)
      : what_(absl::StrCat("model \"", manifest.model, "\"")), budget_(budget) {}

  absl::StatusOr<std::shared_ptr<const PrimaryWeight>> Allocate(const StoredWeight& stored) {
    auto weight = std::make_shared<PrimaryWeight>();
    weight->name = stored.name;
    weight->shape = stored.shape;
    weight->nominal = stored.nominal;
    weight->format = stored.format;
    weight->geometry = stored.geometry;
    weight->amax_history_length = stored.amax_history_length;
    weight->epoch = stored.epoch;
    for (const StoredPlane& stored_plane : stored.planes) {
      PW_ASSIGN_OR_RETURN(std::shared_ptr<const Plane> plane, Allocate(stored, stored_plane));
      switch (stored_plane.kind) {
        case PlaneKind::kRow:
          weight->row = std::move(plane);
          break;
        case PlaneKind::kColumn:
          weight->column = std::move(plane);
          break;
        case PlaneKind::kHighPrecision:
          weight->high_precision = std::move(plane);
          break;
      }
    }
    return weight;
  }

  // In the order of the files.
  std::vector<PartRead> Reads() && {
    std::sort(reads_.begin(), reads_.end(), [](const PartRead& a, const PartRead& b) {
      return std::tie(a.part.stored->segment, a.part.stored->offset) <
             std::tie(b.part.stored->segment, b.part.stored->offset);
    });
    return std::move(reads_);
  }

 private:
  absl::StatusOr<std::shared_ptr<const Plane>> Allocate(const StoredWeight& weight,
                                                        const StoredPlane& stored) {
    auto plane = std::make_shared<Plane>();
    PW_ASSIGN_OR_RETURN(plane->layout, weight.LayoutOf(stored.kind));
    plane->epoch = stored.epoch;
    plane->exponents = stored.exponents;
    for (const PlanePart part : kPlaneParts) {
      const std::optional<StoredPart>& stored_part = stored.part(part);
      if (!stored_part) continue;
      PW_ASSIGN_OR_RETURN(plane->buffer(part),
                          AllocateFor({&weight, &stored, part, &*stored_part}));
    }
    return plane;
  }

  absl::StatusOr<HostBuffer> AllocateFor(const StoredPartView& part) {
    PW_ASSIGN_OR_RETURN(HostBuffer buffer,
                        HostBuffer::AllocateUninitialized(budget_, MemoryUse::kWeights,
                                                          part.stored->length, what_));
    reads_.push_back({part, buffer.mutable_bytes()});
    return buffer;
  }

  const std::string what_;
  MemoryBudget& budget_;
  std::vector<PartRead> reads_;
};

absl::StatusOr<ModelVersion> AllocateVersion(const Manifest& manifest, Allocation& allocation) {
  ModelVersion version;
  version.model = manifest.model;
  version.version = manifest.version;
  version.recipe = manifest.recipe;
  version.policy = manifest.policy;
  version.backward_enabled = manifest.backward_enabled;
  version.trainable = manifest.trainable;
  version.source_path = manifest.source_path;
  version.local = manifest.local;
  for (const StoredLayer& stored : manifest.layers) {
    HostedLayer& layer = version.layers.emplace_back();
    layer.name = stored.name;
    layer.kind = stored.kind;
    layer.decision = stored.decision;
    layer.provenance = stored.provenance;
    PW_ASSIGN_OR_RETURN(layer.weight, allocation.Allocate(stored.weight));
    if (stored.bias) {
      PW_ASSIGN_OR_RETURN(layer.bias, allocation.Allocate(*stored.bias));
    }
  }
  return version;
}

}  // namespace

absl::StatusOr<ModelVersion> LoadVersion(FileSystem& file_system, absl::string_view segments,
                                         const Manifest& manifest, MemoryBudget& budget,
                                         const TransferControl& control) {
  Allocation allocation(manifest, budget);
  PW_ASSIGN_OR_RETURN(ModelVersion version, AllocateVersion(manifest, allocation));
  std::vector<SegmentReader> readers;
  for (const StoredSegment& segment : manifest.segments) {
    PW_ASSIGN_OR_RETURN(SegmentReader reader, SegmentReader::Open(file_system, segments, segment));
    readers.push_back(std::move(reader));
  }
  TransferMeter meter(control, absl::StrCat("load of model \"", manifest.model, "\""),
                      manifest.stored_bytes());
  for (const PartRead& read : std::move(allocation).Reads()) {
    const SegmentReader& reader = readers[static_cast<size_t>(read.part.stored->segment)];
    PW_RETURN_IF_ERROR(reader.Read(read.part, read.destination, meter));
  }
  return version;
}

}  // namespace planewise
