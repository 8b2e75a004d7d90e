#ifndef PLANEWISE_CORE_QUANT_QUANTIZER_H_
#define PLANEWISE_CORE_QUANT_QUANTIZER_H_
// Turns high-precision matrices into planes and back. Implementations (scalar,
// vectorised, CUDA) give the same bytes; quantizer_conformance.h holds them to
// it. The scalar one is normative and the one to read.
//
// Not here: the arithmetic's contract (core/numeric/NUMERICS.md), bytes of a
// plane (core/tensor/plane_layout.h), what roles and recipes mean for a matrix
// (quantize_spec.h), threads: callers split by rows (RowRange).

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/strong_int.h"
#include "core/numeric/dtype.h"
#include "core/quant/quantize_spec.h"
#include "core/tensor/matrix_view.h"
#include "core/tensor/memory_budget.h"
#include "core/tensor/plane_layout.h"
#include "core/tensor/primary_weight.h"

namespace planewise {

// Where a plane's bytes go: the arrays of `layout`, each whole. What a column plane
// shares with the row plane is not written through it, and may be null; to be read
// it must point to the row plane's.
struct PlaneSpan {
  PlaneLayout layout;
  uint8_t* payload = nullptr;
  uint8_t* scales = nullptr;
  float* state = nullptr;
};

struct ConstPlaneSpan {
  PlaneLayout layout;
  const uint8_t* payload = nullptr;
  const uint8_t* scales = nullptr;
  const float* state = nullptr;
};

// For reading. `row` is the row plane of the same matrix, needed for a column plane
// that shares arrays with it.
ConstPlaneSpan SpanOf(const Plane& plane, const Plane* row = nullptr);
ConstPlaneSpan ConstOf(const PlaneSpan& span);

// The layout of an MXFP8 plane of `shape` with 1-D blocks and elements of `element`
// (E4M3 or E5M2). Errors as LayoutFor.
absl::StatusOr<PlaneLayout> Mxfp8LayoutFor(PlaneKind kind, MatrixShape shape, DType element);

// Rows of a matrix that are worked on in one call, so that several threads can
// share a matrix and give the bytes of one. Parts begin at multiples of
// kPlaneRowAlignment, and end at one or at the last row.
struct RowRange {
  int64_t first = 0;
  int64_t count = 0;

  int64_t end() const { return first + count; }
};
inline constexpr int64_t kPlaneRowAlignment = 128;

inline RowRange AllRows(MatrixView matrix) { return {0, matrix.rows}; }

// The largest magnitudes of what a row and a column plane are made of: they differ
// where the column plane is made of transformed elements. NaN is skipped.
struct TensorAmax {
  float row = 0;
  float column = 0;

  bool operator==(const TensorAmax&) const = default;
  // To the amax of two parts.
  void Raise(const TensorAmax& other) {
    if (other.row > row) row = other.row;
    if (other.column > column) column = other.column;
  }
};

struct PlaneWishes {
  bool row = true;
  bool column = false;
};

// Thread-safe: implementations have no state. Results do not depend on the
// floating-point mode of the calling thread.
//
// A matrix is quantized in up to two turns, each by parts of rows in any order:
//
//   if (NeedsAmax(spec)) MeasureAmax(src, spec, wishes, rows, &amax) of every part
//   Quantize(src, spec, amax, rows, &row, &column) of every part
class Quantizer {
 public:
  virtual ~Quantizer() = default;

  virtual absl::string_view name() const = 0;

  // Raises `amax` to that of rows `rows` of src, which is the whole matrix. The
  // plane that is not wished for is not measured; if both have the same elements,
  // both are set.
  // INVALID_ARGUMENT if a dtype, the spec or the range of rows is none.
  virtual absl::Status MeasureAmax(MatrixView src, const QuantizeSpec& spec, PlaneWishes wishes,
                                   RowRange rows, TensorAmax* amax) const = 0;

  // Quantizes rows `rows` of src [rows, columns] (F32, BF16 or F16; the whole
  // matrix). `row` and `column` say which planes to make; nullptr = not wanted;
  // their layouts are LayoutFor's, or those of a device that stores the transpose
  // of a per-tensor plane. The parts together write every byte of payload and
  // scales, padding as 0, and nvfp4's state; the part that begins at row 0 writes
  // what is there once. `amax` is the whole matrix's, and read if NeedsAmax(spec).
  //
  // fp8_delayed quantizes with spec.delayed_scale, and leaves the state to its
  // owner (delayed_scaling.h).
  //
  // Row planes require columns % 32 == 0 (mxfp8) or columns % 16 == 0 (nvfp4).
  // Column planes take any number of rows: the last block uses the rows that exist.
  // INVALID_ARGUMENT if a dtype, the spec, a shape, a layout or the range of rows
  // does not fit; then nothing is written.
  virtual absl::Status Quantize(MatrixView src, const QuantizeSpec& spec, const TensorAmax& amax,
                                RowRange rows, const PlaneSpan* row,
                                const PlaneSpan* column) const = 0;

  // Rows `rows` of dst, the whole matrix: the values of the codes of a row or column
  // plane of any format, rounded to dst.dtype. A scale that is NaN gives NaN.
  // INVALID_ARGUMENT as above.
  virtual absl::Status Dequantize(const ConstPlaneSpan& plane, MutableMatrixView dst,
                                  RowRange rows) const = 0;
};

// The normative implementation (link //core/quant:scalar_quantizer).
const Quantizer& ScalarQuantizer();
// Highway, dispatched at run time; what the service uses (link
// //core/quant:vector_quantizer).
const Quantizer& VectorQuantizer();

// Allocates and quantizes the planes of a matrix. `what` names it in errors, which
// are those of Quantize and MemoryBudget::Reserve. The state of an fp8_delayed
// weight begins anew: its scale is spec.delayed_scale, its live amax the matrix's.
struct QuantizedPlanes {
  std::shared_ptr<Plane> row;
  std::shared_ptr<Plane> column;
};
absl::StatusOr<QuantizedPlanes> QuantizeToPlanes(const Quantizer& quantizer, MemoryBudget& budget,
                                                 MemoryUse use, MatrixView src,
                                                 const QuantizeSpec& spec, PlaneWishes wishes,
                                                 WeightVersion epoch, absl::string_view what);

// The same in steps, for callers with threads of their own: a plane without bytes,
// and where they go.
absl::StatusOr<std::shared_ptr<Plane>> AllocatePlane(MemoryBudget& budget, MemoryUse use,
                                                     const PlaneLayout& layout, WeightVersion epoch,
                                                     absl::string_view what);
PlaneSpan MutableSpanOf(Plane& plane);
// Starts the state of an fp8_delayed weight's row plane, as QuantizeToPlanes does.
void StartDelayedState(const QuantizeSpec& spec, const TensorAmax& amax, Plane& row);

// Range of biased exponents over the blocks of an MXFP8 plane that have a non-zero
// code; nullopt if none, and for other formats. NaN codes and a scale of 255 count
// as they stand.
std::optional<ExponentRange> NonZeroExponents(const ConstPlaneSpan& plane);
// The same of a part of the rows.
std::optional<ExponentRange> NonZeroExponents(const ConstPlaneSpan& plane, RowRange rows);

// The first NaN or infinity of src as a flat index; nullopt if all finite.
std::optional<int64_t> FirstNonFinite(MatrixView src);

}  // namespace planewise

#endif  // PLANEWISE_CORE_QUANT_QUANTIZER_H_
