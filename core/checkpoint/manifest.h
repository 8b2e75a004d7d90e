#ifndef PLANEWISE_CORE_CHECKPOINT_MANIFEST_H_
#define PLANEWISE_CORE_CHECKPOINT_MANIFEST_H_
// What one durable version consists of: every layer, every plane, and where its
// bytes lie with which checksum. A value; the version's bytes are in segments.
//
// Invariants, checked by CheckInvariants and cited by tests:
//  1. The model's name is legal, the version is not 0, the recipe is legal.
//  2. Segment names are distinct, of this version or an older one.
//  3. Layer names are distinct, weight and bias names are distinct.
//  4. A quantized weight has a row plane, a high-precision one exactly the
//     high-precision plane; planes of a weight are of distinct kinds.
//  5. Every plane's epoch is its weight's, not 0 and not after the version.
//  6. A plane's payload, scales and state are there iff PlaneLayoutFor's layout
//     stores them, and have its lengths.
//  7. Every part lies in its segment, behind the header, and no two overlap.
//  8. The decision names the planes that are there.
//  9. Exponent ranges are those of E8M0, on planes with such scales only.
// 10. A weight has a history of amaxes iff its format has one.
//
// Not here: bytes of a manifest (manifest_codec.h).

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/base/strong_int.h"
#include "core/layer/model_version.h"
#include "core/numeric/dtype.h"
#include "core/recipe/recipe.h"
#include "core/tensor/plane_layout.h"
#include "core/tensor/plane_set.h"
#include "core/tensor/primary_weight.h"

namespace planewise {

// Bytes of one tensor of a segment.
struct StoredPart {
  int64_t segment = 0;    // index into Manifest::segments
  int64_t offset = 0;     // from the start of the file
  int64_t length = 0;     // bytes
  uint64_t checksum = 0;  // XXH3, 64 bits, of these bytes

  bool operator==(const StoredPart&) const = default;
};

struct StoredPlane {
  PlaneKind kind = PlaneKind::kRow;
  WeightVersion epoch;
  std::optional<StoredPart> payload;  // nullopt: the row plane's serves
  std::optional<StoredPart> scales;
  std::optional<ExponentRange> exponents;
  std::optional<StoredPart> state;

  std::optional<StoredPart>& part(PlanePart part);
  const std::optional<StoredPart>& part(PlanePart part) const;
  bool operator==(const StoredPlane&) const = default;
};

struct StoredWeight {
  std::string name;
  MatrixShape shape;
  DType nominal = DType::kBF16;
  Format format = Format::kNone;
  BlockGeometry geometry = BlockGeometry::k1D;
  WeightVersion epoch;
  std::vector<StoredPlane> planes;  // in order of kind
  int64_t amax_history_length = 0;

  // Errors as PlaneLayoutFor.
  absl::StatusOr<PlaneLayout> LayoutOf(PlaneKind kind) const;
  bool operator==(const StoredWeight&) const = default;
};

struct StoredLayer {
  std::string name;
  LayerKind kind = LayerKind::kLinear;
  StoredWeight weight;
  std::optional<StoredWeight> bias;
  PlaneDecision decision;
  std::string provenance;

  bool operator==(const StoredLayer&) const = default;
};

// A part's name in its segment: "<weight>#<plane>.<part>", for example
// "layers.0.q.weight#row.payload".
std::string PartName(absl::string_view weight, PlaneKind kind, PlanePart part);

// A safetensors file of the model's segments directory.
struct StoredSegment {
  std::string file;  // its name there
  int64_t file_bytes = 0;
  int64_t header_bytes = 0;      // length field and JSON
  uint64_t header_checksum = 0;  // XXH3, 64 bits, of these bytes

  bool operator==(const StoredSegment&) const = default;
};

// A part with where it belongs; pointers into its manifest.
struct StoredPartView {
  const StoredWeight* weight = nullptr;
  const StoredPlane* plane = nullptr;
  PlanePart part = PlanePart::kPayload;
  const StoredPart* stored = nullptr;

  std::string name() const { return PartName(weight->name, plane->kind, part); }
};

struct Manifest {
  std::string model;
  WeightVersion version;
  Recipe recipe;
  PlanePolicy policy = PlanePolicy::kAuto;
  bool backward_enabled = true;
  bool trainable = false;
  std::string source_path;
  // Requests that made the version durable: a repeated one finds its result.
  std::vector<std::string> request_ids;
  std::vector<StoredSegment> segments;
  std::vector<StoredLayer> layers;
  std::vector<LocalTensor> local;

  bool operator==(const Manifest&) const = default;

  // Every part: layer by layer, weight before bias, planes in order of kind,
  // payload, scales, state.
  std::vector<StoredPartView> Parts() const;

  // DATA_LOSS / CORRUPT_FILE with the number of the first invariant that does
  // not hold and the object that breaks it.
  absl::Status CheckInvariants() const;

  // Bytes of all parts.
  int64_t stored_bytes() const;
};

}  // namespace planewise

#endif  // PLANEWISE_CORE_CHECKPOINT_MANIFEST_H_
