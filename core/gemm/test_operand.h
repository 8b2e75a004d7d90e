#ifndef PLANEWISE_CORE_GEMM_TEST_OPERAND_H_
#define PLANEWISE_CORE_GEMM_TEST_OPERAND_H_
// Operands for GEMM tests, made of random elements, codes and scales. Planes
// here need not come from a quantizer: any code may stand under any scale.

#include <cstdint>
#include <random>
#include <vector>

#include "core/gemm/gemm_operand.h"
#include "core/gemm/gemm_problem.h"

namespace planewise {

// Owns the bytes.
class TestOperand {
 public:
  // [rows, columns] elements of about 1, both signs.
  static TestOperand Dense(std::mt19937_64& random, DType dtype, int64_t rows, int64_t columns);

  // Finite codes under scales from exponents.min to exponents.max. One block in
  // eight is zeros under scale 0, as quantizers write it.
  static TestOperand Plane(std::mt19937_64& random, PlaneKind kind, DType element, int64_t rows,
                           int64_t columns, ExponentRange exponents);

  TestOperand(TestOperand&&) = default;
  TestOperand& operator=(TestOperand&&) = default;

  const GemmOperand& operand() const { return operand_; }
  OperandFormat Format(OperandKind kind, Contracted contracted) const;

  // The stored rows [first_row, first_row + row_count), of a dense matrix or a
  // row plane.
  TestOperand Rows(int64_t first_row, int64_t row_count) const;

  // To change by hand; UpdateExponents afterwards.
  uint8_t& Code(int64_t row, int64_t column);
  uint8_t& Scale(int64_t scale_row, int64_t scale_column);
  void UpdateExponents();

 private:
  TestOperand() = default;

  GemmOperand operand_;           // points into the vectors
  std::vector<uint8_t> payload_;  // of a plane, or dense elements
  std::vector<uint8_t> scales_;
};

}  // namespace planewise

#endif  // PLANEWISE_CORE_GEMM_TEST_OPERAND_H_
