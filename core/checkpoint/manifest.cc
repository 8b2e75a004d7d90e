#include "core/checkpoint/manifest.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/store_names.h"

namespace planewise {
namespace {

// 255 is NaN.
constexpr int kE8M0FiniteMax = 254;

Error Broken(int invariant, absl::string_view text) {
  return Error(Reason::kCorruptFile,
               absl::StrCat("manifest invariant ", invariant, " does not hold: ", text))
      .With("invariant", invariant);
}

absl::Status CheckSegments(const Manifest& manifest) {
  std::set<absl::string_view> files;
  for (const StoredSegment& segment : manifest.segments) {
    const std::optional<WeightVersion> version = VersionOfSegmentFile(segment.file);
    if (!version || *version > manifest.version || !files.insert(segment.file).second) {
      return Broken(2, absl::StrCat("segment \"", segment.file, "\""));
    }
    if (segment.header_bytes < 0 || segment.header_bytes > segment.file_bytes) {
      return Broken(7, absl::StrCat("the header of segment \"", segment.file, "\" has ",
                                    segment.header_bytes, " of ", segment.file_bytes, " bytes"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckNames(const Manifest& manifest) {
  std::set<absl::string_view> layers;
  std::set<absl::string_view> weights;
  for (const StoredLayer& layer : manifest.layers) {
    if (!layers.insert(layer.name).second) {
      return Broken(3, absl::StrCat("layer \"", layer.name, "\" occurs twice"));
    }
    if (!weights.insert(layer.weight.name).second ||
        (layer.bias && !weights.insert(layer.bias->name).second)) {
      return Broken(3, absl::StrCat("a weight or bias of layer \"", layer.name,
                                    "\" has the name of another"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckPlaneKinds(const StoredWeight& weight) {
  for (size_t i = 1; i < weight.planes.size(); ++i) {
    if (weight.planes[i - 1].kind >= weight.planes[i].kind) {
      return Broken(4, absl::StrCat("planes of \"", weight.name, "\" are not in order of kind"));
    }
  }
  const bool high_precision = weight.format == Format::kNone;
  const bool sound = !weight.planes.empty() &&
                     (high_precision ? weight.planes.front().kind == PlaneKind::kHighPrecision
                                     : weight.planes.front().kind == PlaneKind::kRow &&
                                           weight.planes.back().kind != PlaneKind::kHighPrecision);
  if (!sound) {
    return Broken(4, absl::StrCat("\"", weight.name, "\" of format ", Name(weight.format),
                                  " has the wrong planes"));
  }
  return absl::OkStatus();
}

absl::Status CheckPlane(const Manifest& manifest, const StoredWeight& weight,
                        const StoredPlane& plane) {
  const std::string what =
      absl::StrCat("the ", Name(plane.kind), " plane of \"", weight.name, "\"");
  if (plane.epoch != weight.epoch || plane.epoch == WeightVersion() ||
      plane.epoch > manifest.version) {
    return Broken(
        5, absl::StrCat(what, " has epoch ", plane.epoch.value(), ", its weight ",
                        weight.epoch.value(), ", the version is ", manifest.version.value()));
  }
  const absl::StatusOr<PlaneLayout> layout = weight.LayoutOf(plane.kind);
  if (!layout.ok()) return Broken(6, absl::StrCat(what, ": ", layout.status().message()));
  for (const PlanePart part : kPlaneParts) {
    const std::optional<StoredPart>& stored = plane.part(part);
    const bool wanted = layout->Stores(part);
    if (stored.has_value() != wanted) {
      return Broken(6, absl::StrCat(what, wanted ? " lacks its " : " has ", Name(part)));
    }
    if (stored && stored->length != layout->SizeBytesOf(part)) {
      return Broken(6, absl::StrCat(what, " has ", stored->length, " bytes of ", Name(part),
                                    "; its shape requires ", layout->SizeBytesOf(part)));
    }
  }
  if (plane.exponents &&
      (layout->scale_dtype != DType::kF8E8M0 || plane.exponents->min < 0 ||
       plane.exponents->min > plane.exponents->max || plane.exponents->max > kE8M0FiniteMax)) {
    return Broken(9, absl::StrCat(what, " has exponents ", plane.exponents->min, " to ",
                                  plane.exponents->max));
  }
  return absl::OkStatus();
}

absl::Status CheckWeight(const Manifest& manifest, const StoredWeight& weight) {
  PW_RETURN_IF_ERROR(CheckPlaneKinds(weight));
  if ((weight.amax_history_length != 0) != (weight.format == Format::kFp8Delayed)) {
    return Broken(10, absl::StrCat("\"", weight.name, "\" of format ", Name(weight.format),
                                   " has a history of ", weight.amax_history_length, " amaxes"));
  }
  for (const StoredPlane& plane : weight.planes) {
    PW_RETURN_IF_ERROR(CheckPlane(manifest, weight, plane));
  }
  return absl::OkStatus();
}

// A layer's planes and its bias, which is always high precision.
absl::Status CheckLayer(const Manifest& manifest, const StoredLayer& layer) {
  PW_RETURN_IF_ERROR(CheckWeight(manifest, layer.weight));
  if (layer.bias) {
    if (layer.bias->format != Format::kNone) {
      return Broken(4, absl::StrCat("the bias \"", layer.bias->name, "\" is quantized"));
    }
    PW_RETURN_IF_ERROR(CheckWeight(manifest, *layer.bias));
  }
  const bool column = layer.weight.planes.back().kind == PlaneKind::kColumn;
  if (!layer.decision.row || layer.decision.column != column) {
    return Broken(
        8, absl::StrCat("the decision of layer \"", layer.name, "\" differs from its planes"));
  }
  return absl::OkStatus();
}

absl::Status CheckParts(const Manifest& manifest) {
  std::vector<StoredPartView> parts = manifest.Parts();
  for (const StoredPartView& view : parts) {
    const StoredPart& part = *view.stored;
    if (part.segment < 0 || part.segment >= static_cast<int64_t>(manifest.segments.size())) {
      return Broken(7, absl::StrCat("\"", view.name(), "\" lies in segment ", part.segment, " of ",
                                    manifest.segments.size()));
    }
    const StoredSegment& segment = manifest.segments[static_cast<size_t>(part.segment)];
    if (part.length < 0 || part.offset < segment.header_bytes || part.offset > segment.file_bytes ||
        part.length > segment.file_bytes - part.offset) {
      return Broken(
          7, absl::StrCat("\"", view.name(), "\" spans ", part.length, " bytes from ", part.offset,
                          " of segment \"", segment.file, "\", which has ", segment.file_bytes));
    }
  }
  std::sort(parts.begin(), parts.end(), [](const StoredPartView& a, const StoredPartView& b) {
    return std::tie(a.stored->segment, a.stored->offset, a.stored->length) <
           std::tie(b.stored->segment, b.stored->offset, b.stored->length);
  });
  for (size_t i = 1; i < parts.size(); ++i) {
    const StoredPart& before = *parts[i - 1].stored;
    const StoredPart& part = *parts[i].stored;
    if (before.segment == part.segment && before.offset + before.length > part.offset) {
      return Broken(
          7, absl::StrCat("\"", parts[i - 1].name(), "\" and \"", parts[i].name(), "\" overlap"));
    }
  }
  return absl::OkStatus();
}

void AddParts(const StoredWeight& weight, std::vector<StoredPartView>& parts) {
  for (const StoredPlane& plane : weight.planes) {
    for (const PlanePart part : kPlaneParts) {
      const std::optional<StoredPart>& stored = plane.part(part);
      if (stored) parts.push_back({&weight, &plane, part, &*stored});
    }
  }
}

}  // namespace

std::string PartName(absl::string_view weight, PlaneKind kind, PlanePart part) {
  return absl::StrCat(weight, "#", Name(kind), ".", Name(part));
}

const std::optional<StoredPart>& StoredPlane::part(PlanePart part) const {
  switch (part) {
    case PlanePart::kPayload:
      return payload;
    case PlanePart::kScales:
      return scales;
    case PlanePart::kState:
      break;
  }
  return state;
}

std::optional<StoredPart>& StoredPlane::part(PlanePart which) {
  return const_cast<std::optional<StoredPart>&>(std::as_const(*this).part(which));
}

absl::StatusOr<PlaneLayout> StoredWeight::LayoutOf(PlaneKind kind) const {
  PlaneOptions options;
  options.amax_history_length = amax_history_length;
  return PlaneLayoutFor(format, geometry, kind, shape, nominal, options);
}

std::vector<StoredPartView> Manifest::Parts() const {
  std::vector<StoredPartView> parts;
  for (const StoredLayer& layer : layers) {
    AddParts(layer.weight, parts);
    if (layer.bias) AddParts(*layer.bias, parts);
  }
  return parts;
}

int64_t Manifest::stored_bytes() const {
  int64_t total = 0;
  for (const StoredPartView& view : Parts()) total += view.stored->length;
  return total;
}

absl::Status Manifest::CheckInvariants() const {
  const absl::Status name = CheckModelName(model);
  if (!name.ok()) return Broken(1, name.message());
  if (version == WeightVersion()) return Broken(1, "the version is 0");
  const absl::Status legal = CheckRecipe(recipe);
  if (!legal.ok()) return Broken(1, legal.message());
  PW_RETURN_IF_ERROR(CheckSegments(*this));
  PW_RETURN_IF_ERROR(CheckNames(*this));
  for (const StoredLayer& layer : layers) PW_RETURN_IF_ERROR(CheckLayer(*this, layer));
  return CheckParts(*this);
}

}  // namespace planewise
