#ifndef PLANEWISE_CORE_GEMM_WIDE_GEMM_H_
#define PLANEWISE_CORE_GEMM_WIDE_GEMM_H_
// The rows of a product of codes whose exponents span more than BF16 and F32
// products hold (path expanded_fp32). Codes become F64, which holds each of
// them and each product exactly; the sum is rounded to F32 once. F32 would not
// do: 448 * 2^120, scale 247, is beyond it already. Scalar, and meant to be
// rare: such a row spans some 10^60.
//
// Not here: which rows these are (expansion.h).

#include <cstdint>

#include "absl/types/span.h"
#include "core/gemm/operand_tile.h"

namespace planewise {

// sums[i * stride + j] = the sum over p of A(rows[i], p) * B(first_column + j, p),
// for j < columns <= 64. Both sources are kCodes.
void MultiplyWide(const OperandSource& a, const OperandSource& b, int64_t k,
                  absl::Span<const int64_t> rows, int64_t first_column, int64_t columns,
                  float* sums, int64_t stride);

}  // namespace planewise

#endif  // PLANEWISE_CORE_GEMM_WIDE_GEMM_H_
