#ifndef PLANEWISE_CORE_QUANT_PLANE_GEOMETRY_H_
#define PLANEWISE_CORE_QUANT_PLANE_GEOMETRY_H_
// Where a matrix's elements and their scales lie in a plane, for every format:
// which elements share a scale, which planes are stored transposed, and how often
// a scale is stored.
//
// Not here: sizes and padding (core/tensor/plane_layout.h).

#include <cstdint>

#include "absl/status/statusor.h"
#include "core/recipe/recipe.h"
#include "core/tensor/plane_layout.h"

namespace planewise {

// Element [i, j] of the matrix [rows, columns]. Steps are powers of two.
struct PlaneGeometry {
  Format format = Format::kNone;
  int64_t rows = 0;
  int64_t columns = 0;

  // A block: so many rows and columns of the matrix have one largest magnitude.
  int64_t block_rows = 1;
  int64_t block_columns = 1;
  // Within a block its scale is stored once for so many of them.
  int scale_rows_log2 = 0;
  int scale_columns_log2 = 0;
  bool scales_transposed = false;

  bool payload_transposed = false;
  // From one stored row to the next, padding included.
  int64_t payload_stride = 0;
  int64_t scale_stride = 0;

  // In elements: of two to a byte, too.
  int64_t PayloadIndex(int64_t i, int64_t j) const {
    return payload_transposed ? j * payload_stride + i : i * payload_stride + j;
  }
  // In scales.
  int64_t ScaleIndex(int64_t i, int64_t j) const {
    const int64_t scale_i = i >> scale_rows_log2;
    const int64_t scale_j = j >> scale_columns_log2;
    return scales_transposed ? scale_j * scale_stride + scale_i : scale_i * scale_stride + scale_j;
  }
};

// The geometry of a row or column plane that LayoutFor laid out.
PlaneGeometry GeometryOf(Format format, BlockGeometry blocks, const PlaneLayout& layout);

// The geometry that `layout` was made with, for reading a plane of [rows, columns]
// elements. Where the layouts of two formats coincide, their planes are read
// alike. INVALID_ARGUMENT / SHAPE_MISMATCH if it is no layout of a quantized plane
// of that shape.
absl::StatusOr<PlaneGeometry> FindGeometry(const PlaneLayout& layout, MatrixShape shape);

}  // namespace planewise

#endif  // PLANEWISE_CORE_QUANT_PLANE_GEOMETRY_H_
