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

// The arrays of a plane: element codes; scales in compact order; F32 state.
enum class PlanePart : uint8_t { kPayload, kScales, kState };

inline constexpr PlanePart kPlaneParts[] = {PlanePart::kPayload, PlanePart::kScales,
                                            PlanePart::kState};
absl::string_view Name(PlanePart part);  // payload, scales, state

// A weight [out, in]; also an activation [tokens, in] with out = tokens.
struct MatrixShape {
  int64_t out = 0;
  int64_t in = 0;

  bool operator==(const MatrixShape&) const = default;
  int64_t elements() const { return out * in; }
};

std::ostream& operator<<(std::ostream& out, const MatrixShape& shape);

// One plane of a matrix [N, K] = [out, in], up(x, m) being x rounded up to a
// multiple of m and cd(a, b) the quotient rounded up:
//
//                 payload               scales
//   mxfp8   row   E4M3 [N, K]           E8M0 [up(N, 128), up(cd(K, 32), 4)]
//        column   E4M3 [N, K]           E8M0 [up(cd(N, 32), 4), up(K, 128)]
//   nvfp4   row   E2M1 [N, K]           E4M3 [up(N, 128), up(cd(K, 16), 4)]
//        column   E2M1 [K, N]           E4M3 [up(K, 128), up(cd(N, 16), 4)]
//   block   row   E4M3 [N, K]      1-D  F32 [cd(K, 128), up(N, 4)]
//                                  2-D  F32 [cd(N, 128), up(cd(K, 128), 4)]
//        column   E4M3 [K, N]      1-D  F32 [cd(N, 128), up(K, 4)]
//                                  2-D  F32 [cd(K, 128), up(cd(N, 128), 4)]
//   per tensor    E4M3 [N, K], column [K, N]; one F32 scale for both
//   high precision, the matrix itself in its nominal type, no scales
//
// State is F32: of nvfp4 each plane's largest magnitude; of fp8_delayed, on the
// row plane, the scale of the next cast and then the history.
//
// E2M1 is packed two to a byte, and each row starts a byte. A column plane of 2-D
// mxfp8 has the codes of the row plane, and a per-tensor one is its transpose:
// where that is not stored, payload_bytes is 0 and the row plane's payload serves.
struct PlaneLayout {
  PlaneKind kind = PlaneKind::kRow;
  DType payload_dtype = DType::kU8;
  int64_t payload_rows = 0;     // elements, as the format stores them
  int64_t payload_columns = 0;  // elements, as the format stores them
  int64_t payload_bytes = 0;
  DType scale_dtype = DType::kU8;
  int64_t scale_rows = 0;       // padded
  int64_t scale_columns = 0;    // padded
  int64_t used_scale_rows = 0;  // the rest is padding
  int64_t used_scale_columns = 0;
  int64_t scale_bytes = 0;
  int64_t state_bytes = 0;
  // The row plane's arrays serve this column plane too, and are counted there. A
  // shared payload is as the row plane stores it, not transposed.
  bool shares_row_payload = false;
  bool shares_row_scales = false;

  bool operator==(const PlaneLayout&) const = default;
  int64_t total_bytes() const { return payload_bytes + scale_bytes + state_bytes; }
  // Has the plane this array of its own?
  bool Stores(PlanePart part) const;
  int64_t SizeBytesOf(PlanePart part) const;
  int64_t state_elements() const { return state_bytes / int64_t{sizeof(float)}; }
  // Bytes from one payload row to the next.
  int64_t payload_row_bytes() const {
    return payload_dtype == DType::kF4E2M1 ? (payload_columns + 1) / 2 : payload_columns;
  }
};

// Elements that share a scale, along the direction of a plane's blocks.
inline constexpr int64_t kMxfp8Block = 32;
inline constexpr int64_t kNvfp4Block = 16;
inline constexpr int64_t kFp8Block = 128;

// What a layout depends on beside format and shape.
struct PlaneOptions {
  // Of fp8_delayed, at least 1.
  int64_t amax_history_length = 0;
  // Devices whose FP8 GEMMs read both operands along K keep the transpose of a
  // per-tensor weight: SM 8.9, 9.0 and 12.x. Elsewhere, CPU included, it is not
  // stored.
  bool stores_per_tensor_column = false;
};

// The layout of one plane of a weight or activation in `format`, of E4M3 elements
// (E2M1 for nvfp4).
//
// `nominal` is the high-precision type the matrix stands for (the payload type
// of kHighPrecision). Dimensions need not be multiples of the block here; that
// rule is recipe_check's. INVALID_ARGUMENT for negative dimensions, overflow, a
// quantized plane of format none and delayed scaling without a history.
absl::StatusOr<PlaneLayout> PlaneLayoutFor(Format format, BlockGeometry geometry, PlaneKind kind,
                                           MatrixShape shape, DType nominal,
                                           const PlaneOptions& options = {});

// The same for a weight of `recipe`: its format, geometry and history.
absl::StatusOr<PlaneLayout> WeightPlaneLayout(const Recipe& recipe, PlaneKind kind,
                                              MatrixShape shape, DType nominal);

}  // namespace planewise

#endif  // PLANEWISE_CORE_TENSOR_PLANE_LAYOUT_H_
