#include "core/checkpoint/live_parts.h"

#include <utility>

namespace planewise {
namespace {

// Planes in order of kind; nullptr where there is none.
std::vector<const Plane*> PlanesOf(const PrimaryWeight& weight) {
  return {weight.row.get(), weight.column.get(), weight.high_precision.get()};
}

void AddParts(const PrimaryWeight& weight, std::vector<LivePart>& parts) {
  for (const Plane* plane : PlanesOf(weight)) {
    if (plane == nullptr) continue;
    for (const PlanePart part : kPlaneParts) {
      if (plane->layout.Stores(part)) parts.push_back({&weight, plane, part});
    }
  }
}

StoredWeight DescribeWeight(const PrimaryWeight& weight, const StoredParts& stored) {
  StoredWeight described;
  described.name = weight.name;
  described.shape = weight.shape;
  described.nominal = weight.nominal;
  described.format = weight.format;
  described.geometry = weight.geometry;
  described.amax_history_length = weight.amax_history_length;
  described.epoch = weight.epoch;
  for (const Plane* plane : PlanesOf(weight)) {
    if (plane == nullptr) continue;
    StoredPlane& described_plane = described.planes.emplace_back();
    const PlaneKind kind = plane->layout.kind;
    described_plane.kind = kind;
    described_plane.epoch = plane->epoch;
    for (const PlanePart part : kPlaneParts) {
      if (!plane->layout.Stores(part)) continue;
      described_plane.part(part) = stored.by_name.at(PartName(weight.name, kind, part));
    }
    described_plane.exponents = plane->exponents;
  }
  return described;
}

}  // namespace

std::string LivePart::name() const { return PartName(weight->name, plane->layout.kind, part); }

absl::Span<const std::byte> LivePart::bytes() const { return plane->buffer(part).bytes(); }

SafetensorsTensor LivePart::tensor() const {
  const PlaneLayout& layout = plane->layout;
  switch (part) {
    case PlanePart::kPayload:
      if (layout.payload_dtype == DType::kF4E2M1) {
        return {name(), DType::kU8, {layout.payload_rows, layout.payload_row_bytes()}};
      }
      return {name(), layout.payload_dtype, {layout.payload_rows, layout.payload_columns}};
    case PlanePart::kScales: {
      const DType dtype = layout.scale_dtype == DType::kF32 ? DType::kF32 : DType::kU8;
      return {name(), dtype, {layout.scale_rows, layout.scale_columns}};
    }
    case PlanePart::kState:
      break;
  }
  return {name(), DType::kF32, {layout.state_elements()}};
}

std::vector<LivePart> LivePartsOf(const ModelVersion& version) {
  std::vector<LivePart> parts;
  for (const HostedLayer& layer : version.layers) {
    AddParts(*layer.weight, parts);
    if (layer.bias != nullptr) AddParts(*layer.bias, parts);
  }
  return parts;
}

Manifest DescribeVersion(const ModelVersion& version, const std::vector<std::string>& request_ids,
                         const StoredParts& stored) {
  Manifest manifest;
  manifest.model = version.model;
  manifest.version = version.version;
  manifest.recipe = version.recipe;
  manifest.policy = version.policy;
  manifest.backward_enabled = version.backward_enabled;
  manifest.trainable = version.trainable;
  manifest.source_path = version.source_path;
  manifest.request_ids = request_ids;
  manifest.segments = stored.segments;
  manifest.local = version.local;
  for (const HostedLayer& layer : version.layers) {
    StoredLayer& described = manifest.layers.emplace_back();
    described.name = layer.name;
    described.kind = layer.kind;
    described.weight = DescribeWeight(*layer.weight, stored);
    if (layer.bias != nullptr) described.bias = DescribeWeight(*layer.bias, stored);
    described.decision = layer.decision;
    described.provenance = layer.provenance;
  }
  return manifest;
}

}  // namespace planewise
