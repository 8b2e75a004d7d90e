#ifndef PLANEWISE_CORE_QUANT_QUANTIZER_H_
#define PLANEWISE_CORE_QUANT_QUANTIZER_H_
// Turns high-precision matrices into planes and back. Implementations (scalar,
// vectorised, CUDA) give the same bytes; quantizer_conformance.h holds them to
// it. The scalar one is normative and the one to read.
//
// Not here: the arithmetic's contract (core/numeric/NUMERICS.md), bytes of a
// plane (core/tensor/plane_layout.h), threads: callers split by rows (RowsOf).

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/strong_int.h"
#include "core/numeric/dtype.h"
#include "core/tensor/matrix_view.h"
#include "core/tensor/memory_budget.h"
#include "core/tensor/plane_layout.h"
#include "core/tensor/primary_weight.h"

namespace planewise {

// Where a plane's bytes go: payload and scales of `layout`, both whole.
struct PlaneSpan {
  PlaneLayout layout;
  uint8_t* payload = nullptr;
  uint8_t* scales = nullptr;
};

struct ConstPlaneSpan {
  PlaneLayout layout;
  const uint8_t* payload = nullptr;
  const uint8_t* scales = nullptr;
};

ConstPlaneSpan SpanOf(const Plane& plane);

// The layout of an MXFP8 plane of `shape` with elements of `element` (E4M3 or
// E5M2). Errors as PlaneLayoutFor.
absl::StatusOr<PlaneLayout> Mxfp8LayoutFor(PlaneKind kind, MatrixShape shape, DType element);

// Rows [first_row, first_row + row_count) of an MXFP8 plane, row or column, are
// a whole plane of those rows: a matrix can be quantized and dequantized in
// parts, by several threads, and gives the same bytes. Parts begin at multiples
// of kPlaneRowAlignment, and end at one or at the last row.
inline constexpr int64_t kPlaneRowAlignment = 128;
PlaneSpan RowsOf(const PlaneSpan& plane, int64_t first_row, int64_t row_count);
ConstPlaneSpan RowsOf(const ConstPlaneSpan& plane, int64_t first_row, int64_t row_count);

// Thread-safe: implementations have no state. Results do not depend on the
// floating-point mode of the calling thread.
class Quantizer {
 public:
  virtual ~Quantizer() = default;

  virtual absl::string_view name() const = 0;

  // Quantizes src [rows, columns] (F32, BF16 or F16) to MXFP8 with elements of
  // `element` (E4M3 or E5M2). `row` and `column` say which planes to make;
  // nullptr = not wanted; their layouts are Mxfp8LayoutFor's. Every byte of
  // them is written, scale padding as 0.
  //
  // Row planes require columns % 32 == 0. A column plane takes any number of
  // rows: a last block of fewer than 32 uses the rows that exist.
  // INVALID_ARGUMENT if a dtype, shape or layout does not match; then nothing
  // is written.
  virtual absl::Status QuantizeMxfp8(MatrixView src, DType element, const PlaneSpan* row,
                                     const PlaneSpan* column) const = 0;

  // dst = fl(code * 2^(b - 127)), rounded to dst.dtype, for all rows of a row
  // or column plane of elements `element`. A scale of 255 gives NaN.
  // INVALID_ARGUMENT as above.
  virtual absl::Status DequantizeMxfp8(ConstPlaneSpan plane, DType element,
                                       MutableMatrixView dst) const = 0;
};

// The normative implementation (link //core/quant:scalar_quantizer).
const Quantizer& ScalarQuantizer();
// Highway, dispatched at run time; what the service uses (link
// //core/quant:vector_quantizer).
const Quantizer& VectorQuantizer();

// Allocates and quantizes the planes of a matrix. `what` names it in errors,
// which are those of QuantizeMxfp8 and MemoryBudget::Reserve.
struct QuantizedPlanes {
  std::shared_ptr<Plane> row;
  std::shared_ptr<Plane> column;
};
struct PlaneWishes {
  bool row = true;
  bool column = false;
};
absl::StatusOr<QuantizedPlanes> QuantizeToPlanes(const Quantizer& quantizer, MemoryBudget& budget,
                                                 MemoryUse use, MatrixView src, DType element,
                                                 PlaneWishes wishes, WeightVersion epoch,
                                                 absl::string_view what);

// Range of biased exponents over blocks with a non-zero code; nullopt if none.
// NaN codes and a scale of 255 count as they stand.
std::optional<ExponentRange> NonZeroExponents(ConstPlaneSpan plane);

// The first NaN or infinity of src as a flat index; nullopt if all finite.
std::optional<int64_t> FirstNonFinite(MatrixView src);

}  // namespace planewise

#endif  // PLANEWISE_CORE_QUANT_QUANTIZER_H_
