#ifndef PLANEWISE_CORE_TENSOR_PLANE_LAYOUT_H_
#define PLANEWISE_CORE_TENSOR_PLANE_LAYOUT_H_
// Bytes of a plane: the one place that computes them. Planner, allocator,
// store and device all use PlaneLayoutFor, so a plan equals an allocation to
// the byte, padding included.
//
// The rules are those of Transformer Engine's storage (rowwise and columnwise
// data and scale_inv), with every padding byte 0.
//
// Not here: planes' bytes themselves (plane.h); which planes are kept
// (planner/plane_decision.h).

#include <cstdint>
#include <ostream>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/numeric/dtype.h"
#include "core/recipe/recipe.h"

namespace planewise {

// kRow: blocks along `in`, read by fprop. kColumn: blocks along `out`, read by
// a quantized dgrad. kHighPrecision: the matrix itself.
enum class PlaneKind : uint8_t { kRow, kColumn, kHighPrecision };

absl::string_view Name(PlaneKind kind);
std::ostream& operator<<(std::ostream& out, PlaneKind kind);

// The two arrays of a plane: element codes, and scales in compact order.
enum class PlanePart : uint8_t { kPayload, kScales };

// A weight [out, in]; also an activation [tokens, in] with out = tokens.
struct MatrixShape {
  int64_t out = 0;
  int64_t in = 0;

  bool operator==(const MatrixShape&) const = default;
  int64_t elements() const { return out * in; }
};

std::ostream& operator<<(std::ostream& out, const MatrixShape& shape);

// One plane of a matrix. MXFP8, [N, K] = [out, in]:
//   row:    payload E4M3 [N, K]; scales E8M0 [up(N, 128), up(K/32, 4)]
//   column: payload E4M3 [N, K], not transposed; scales E8M0
//           [up(N/32, 4), up(K, 128)]
// High precision: payload [N, K] in the nominal type, no scales.
struct PlaneLayout {
  PlaneKind kind = PlaneKind::kRow;
  DType payload_dtype = DType::kU8;
  int64_t payload_rows = 0;      // elements, as stored
  int64_t payload_columns = 0;   // elements, as stored
  int64_t payload_bytes = 0;
  DType scale_dtype = DType::kU8;
  int64_t scale_rows = 0;        // padded
  int64_t scale_columns = 0;     // padded
  int64_t used_scale_rows = 0;   // the rest is padding
  int64_t used_scale_columns = 0;
  int64_t scale_bytes = 0;
  int64_t state_bytes = 0;       // per-tensor scale or amax

  bool operator==(const PlaneLayout&) const = default;
  int64_t total_bytes() const { return payload_bytes + scale_bytes + state_bytes; }
};

// The layout of one plane of a weight or activation in `format`.
//
// `nominal` is the high-precision type the matrix stands for (the payload type
// of kHighPrecision). Dimensions need not be multiples of the block here; that
// rule is recipe_check's. INVALID_ARGUMENT for negative dimensions and
// overflow, UNIMPLEMENTED for formats that this build does not host.
absl::StatusOr<PlaneLayout> PlaneLayoutFor(Format format, BlockGeometry geometry, PlaneKind kind,
                                           MatrixShape shape, DType nominal);

// Elements along K (row) or N (column) that share a scale; 1 if none.
inline constexpr int64_t kMxfp8Block = 32;

}  // namespace planewise

#endif  // PLANEWISE_CORE_TENSOR_PLANE_LAYOUT_H_
