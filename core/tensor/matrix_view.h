#ifndef PLANEWISE_CORE_TENSOR_MATRIX_VIEW_H_
#define PLANEWISE_CORE_TENSOR_MATRIX_VIEW_H_
// Non-owning views of dense row-major matrices in host memory. Activations
// [..., features] are flattened to [tokens, features] before they get here.

#include <cstdint>

#include "core/numeric/dtype.h"

namespace planewise {

// [rows, columns], row-major, no gaps. dtype is F32, BF16 or F16.
struct MatrixView {
  const void* data = nullptr;
  DType dtype = DType::kBF16;
  int64_t rows = 0;
  int64_t columns = 0;

  int64_t elements() const { return rows * columns; }
};

struct MutableMatrixView {
  void* data = nullptr;
  DType dtype = DType::kBF16;
  int64_t rows = 0;
  int64_t columns = 0;

  int64_t elements() const { return rows * columns; }
  operator MatrixView() const { return {data, dtype, rows, columns}; }  // NOLINT
};

}  // namespace planewise

#endif  // PLANEWISE_CORE_TENSOR_MATRIX_VIEW_H_
