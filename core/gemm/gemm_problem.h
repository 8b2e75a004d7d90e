#ifndef PLANEWISE_CORE_GEMM_GEMM_PROBLEM_H_
#define PLANEWISE_CORE_GEMM_GEMM_PROBLEM_H_
// What is to be multiplied, as a value: sizes, how each operand is stored, and
// the type to multiply in. Checks and prints itself, and is all that a
// workspace size depends on.
//
//   C[i, j] = sum over p of A(i, p) * B(j, p)      (+ bias[j])
//   i < m, j < n, p < k
//
// Not here: pointers (cpu_gemm.h), which layer operation it is (core/layer/).

#include <cstdint>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "core/numeric/dtype.h"
#include "core/tensor/plane_layout.h"

namespace planewise {

// What an operand's elements are taken to be.
//   kDense   elements of a high-precision matrix
//   kCodes   code * 2^(b - 127) of an MXFP8 plane, exactly; both operands then
//   kValues  an MXFP8 row plane dequantized: the same, rounded to `value_dtype`
enum class OperandKind : uint8_t { kDense, kCodes, kValues };

// Which dimension of the stored matrix the sum runs over: kColumns for
// [m, k] and [n, k], kRows for [k, m] and [k, n].
enum class Contracted : uint8_t { kColumns, kRows };

struct OperandFormat {
  OperandKind kind = OperandKind::kDense;
  DType dtype = DType::kBF16;  // F32, BF16 or F16; E4M3 or E5M2 of a plane
  // Codes lie in the plane whose blocks run along the sum: row plane for
  // kColumns, column plane for kRows.
  Contracted contracted = Contracted::kColumns;

  bool operator==(const OperandFormat&) const = default;
};

struct GemmProblem {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  OperandFormat a;
  OperandFormat b;
  // What kDense and kValues are rounded to before they are multiplied: the
  // activation type. Ignored for kCodes.
  DType value_dtype = DType::kBF16;
  // What is multiplied: BF16 or F32; products are added in F32 either way.
  DType compute = DType::kBF16;
  DType output = DType::kBF16;  // F32, BF16 or F16

  bool operator==(const GemmProblem&) const = default;

  // INVALID_ARGUMENT for negative sizes, illegal types, and one operand of
  // codes with one of something else.
  absl::Status Validate() const;

  bool multiplies_codes() const { return a.kind == OperandKind::kCodes; }

  // For example "C[50,64] BF16 = A[50,96] E4M3 codes * B[64,96] E4M3 codes in BF16".
  std::string ToString() const;
};

std::ostream& operator<<(std::ostream& out, const GemmProblem& problem);

}  // namespace planewise

#endif  // PLANEWISE_CORE_GEMM_GEMM_PROBLEM_H_
