#ifndef PLANEWISE_CORE_GEMM_GEMM_OPERAND_H_
#define PLANEWISE_CORE_GEMM_GEMM_OPERAND_H_
// Where the bytes of a GEMM's operand are. How they are read says the problem's
// OperandFormat.

#include <optional>

#include "core/quant/quantizer.h"
#include "core/tensor/matrix_view.h"
#include "core/tensor/primary_weight.h"

namespace planewise {

struct GemmOperand {
  // Of kDense.
  MatrixView dense;
  // Of kCodes (the row plane if the sum runs along columns, the column plane if
  // along rows) and kValues (the row plane).
  ConstPlaneSpan plane;
  // The plane's NonZeroExponents; not read for A's codes.
  std::optional<ExponentRange> exponents;
};

}  // namespace planewise

#endif  // PLANEWISE_CORE_GEMM_GEMM_OPERAND_H_
