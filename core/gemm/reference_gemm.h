#ifndef PLANEWISE_CORE_GEMM_REFERENCE_GEMM_H_
#define PLANEWISE_CORE_GEMM_REFERENCE_GEMM_H_
// A GEMM as its definition reads: F64 throughout, element by element, with
// decoders of its own. What tests compare with.
//
// Not here: how far a result may be from it (error_bound.h).

#include <cstdint>
#include <vector>

#include "core/gemm/gemm_operand.h"
#include "core/gemm/gemm_problem.h"

namespace planewise {

// An operand [rows, k] as the product sees it, in F64, already rounded to the
// problem's value type where that applies.
struct ReferenceOperand {
  int64_t rows = 0;
  int64_t k = 0;
  std::vector<double> elements;

  double at(int64_t row, int64_t p) const { return elements[static_cast<size_t>(row * k + p)]; }
};

ReferenceOperand ReadReference(const OperandFormat& format, const GemmOperand& operand,
                               DType value_dtype, int64_t rows, int64_t k);

struct ReferenceElement {
  double sum = 0;        // of a * b
  double magnitude = 0;  // sum of |a * b|
  // The part of it in products with an operand that is a BF16 subnormal.
  double subnormal = 0;
};

ReferenceElement MultiplyReference(const ReferenceOperand& a, int64_t row,
                                   const ReferenceOperand& b, int64_t column);

// Of one element of a high-precision type.
double ReadElement(DType dtype, const void* data, int64_t index);

}  // namespace planewise

#endif  // PLANEWISE_CORE_GEMM_REFERENCE_GEMM_H_
