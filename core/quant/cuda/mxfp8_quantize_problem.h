#ifndef PLANEWISE_CORE_QUANT_CUDA_MXFP8_QUANTIZE_PROBLEM_H_
#define PLANEWISE_CORE_QUANT_CUDA_MXFP8_QUANTIZE_PROBLEM_H_
// What is asked of the device: one matrix to the row plane of MXFP8. A value
// that checks and prints itself, without CUDA.
//
// Not here: how it is done (mxfp8_quantize_plan.h), column planes.

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "core/numeric/dtype.h"
#include "core/tensor/plane_layout.h"

namespace planewise {

struct Mxfp8QuantizeProblem {
  DType source = DType::kBF16;  // elements of the matrix [rows, columns]
  PlaneLayout row;              // the plane to make; element type and shape are its

  int64_t rows() const { return row.payload_rows; }
  int64_t columns() const { return row.payload_columns; }
  int64_t source_bytes() const;

  // Bytes read and written if every byte moves once.
  int64_t ideal_bytes() const { return source_bytes() + row.total_bytes(); }

  bool operator==(const Mxfp8QuantizeProblem&) const = default;

  // "mxfp8 row quantize [4096, 4096] BF16 to F8_E4M3"
  std::string ToString() const;
};

// Most scale bytes of one plane: the kernel counts them in 32 bits.
inline constexpr int64_t kMxfp8QuantizeScalesMax = int64_t{1} << 31;

// Quantizing [rows, columns] of `source` (F32, BF16 or F16) to `element` (E4M3 or
// E5M2). DTYPE_UNSUPPORTED; SHAPE_NOT_DIVISIBLE unless columns % 32 == 0;
// LIMIT_EXCEEDED; else as Mxfp8LayoutFor.
absl::StatusOr<Mxfp8QuantizeProblem> MakeMxfp8QuantizeProblem(int64_t rows, int64_t columns,
                                                              DType source, DType element);

}  // namespace planewise

#endif  // PLANEWISE_CORE_QUANT_CUDA_MXFP8_QUANTIZE_PROBLEM_H_
