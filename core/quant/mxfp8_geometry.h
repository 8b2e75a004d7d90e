#ifndef PLANEWISE_CORE_QUANT_MXFP8_GEOMETRY_H_
#define PLANEWISE_CORE_QUANT_MXFP8_GEOMETRY_H_
// Which elements of a matrix share a scale.

#include <algorithm>
#include <cstdint>

#include "core/tensor/plane_layout.h"

namespace planewise {

// Elements first, first + stride, ... of the matrix, `count` of them; payloads
// are not transposed, so the same of the payload.
struct BlockElements {
  int64_t first = 0;
  int64_t count = 0;
  int64_t stride = 0;
};

// The block of the scale at [scale_row, scale_column], which is not padding, of
// an MXFP8 row or column plane. The last block along the matrix may be short.
inline BlockElements ElementsOfBlock(const PlaneLayout& layout, int64_t scale_row,
                                     int64_t scale_column) {
  const int64_t rows = layout.payload_rows;
  const int64_t columns = layout.payload_columns;
  if (layout.kind == PlaneKind::kRow) {
    const int64_t first_column = scale_column * kMxfp8Block;
    return {scale_row * columns + first_column, std::min(kMxfp8Block, columns - first_column), 1};
  }
  const int64_t first_row = scale_row * kMxfp8Block;
  return {first_row * columns + scale_column, std::min(kMxfp8Block, rows - first_row), columns};
}

}  // namespace planewise

#endif  // PLANEWISE_CORE_QUANT_MXFP8_GEOMETRY_H_
