#include "core/gemm/test_operand.h"

#include <algorithm>
#include <cstring>

#include "core/numeric/bfloat16.h"
#include "core/numeric/float16.h"

namespace planewise {
namespace {

// Uniform in [-2, 2), with 16 significant bits.
float RandomElement(std::mt19937_64& random) {
  return static_cast<float>(static_cast<int64_t>(random() >> 48) - 32768) / 16384.0f;
}

uint8_t RandomFiniteCode(std::mt19937_64& random, DType element) {
  const uint8_t largest = element == DType::kF8E4M3 ? 0x7E : 0x7B;
  const uint64_t bits = random();
  return static_cast<uint8_t>((bits >> 8) % (largest + 1u) | ((bits & 1) << 7));
}

}  // namespace

TestOperand TestOperand::Dense(std::mt19937_64& random, DType dtype, int64_t rows,
                               int64_t columns) {
  TestOperand result;
  const int64_t count = rows * columns;
  result.payload_.resize(static_cast<size_t>(count) * (dtype == DType::kF32 ? 4 : 2));
  for (int64_t i = 0; i < count; ++i) {
    const float value = RandomElement(random);
    void* to = result.payload_.data() + i * (dtype == DType::kF32 ? 4 : 2);
    if (dtype == DType::kF32) {
      std::memcpy(to, &value, sizeof(value));
    } else {
      const uint16_t bits = dtype == DType::kBF16 ? BFloat16::FromFloat(value).bits
                                                  : Float16::FromFloat(value).bits;
      std::memcpy(to, &bits, sizeof(bits));
    }
  }
  result.operand_.dense = {result.payload_.data(), dtype, rows, columns};
  return result;
}

TestOperand TestOperand::Plane(std::mt19937_64& random, PlaneKind kind, DType element,
                               int64_t rows, int64_t columns, ExponentRange exponents) {
  TestOperand result;
  const PlaneLayout layout = *Mxfp8LayoutFor(kind, {rows, columns}, element);
  result.payload_.resize(static_cast<size_t>(layout.payload_bytes));
  result.scales_.assign(static_cast<size_t>(layout.scale_bytes), 0);
  result.operand_.plane = {layout, result.payload_.data(), result.scales_.data()};
  for (uint8_t& code : result.payload_) code = RandomFiniteCode(random, element);
  const int span = exponents.max - exponents.min + 1;
  for (int64_t i = 0; i < layout.used_scale_rows; ++i) {
    for (int64_t j = 0; j < layout.used_scale_columns; ++j) {
      const uint64_t bits = random();
      if (bits % 8 != 0) {
        result.Scale(i, j) = static_cast<uint8_t>(
            exponents.min + static_cast<int>((bits >> 8) % static_cast<uint64_t>(span)));
        continue;
      }
      const int64_t first_row = kind == PlaneKind::kRow ? i : 32 * i;
      const int64_t first_column = kind == PlaneKind::kRow ? 32 * j : j;
      const int64_t end_row = kind == PlaneKind::kRow ? i + 1 : std::min(first_row + 32, rows);
      const int64_t end_column = kind == PlaneKind::kRow ? first_column + 32 : j + 1;
      for (int64_t row = first_row; row < end_row; ++row) {
        for (int64_t column = first_column; column < end_column; ++column) {
          result.Code(row, column) &= 0x80;
        }
      }
    }
  }
  result.UpdateExponents();
  return result;
}

OperandFormat TestOperand::Format(OperandKind kind, Contracted contracted) const {
  const DType dtype = kind == OperandKind::kDense ? operand_.dense.dtype
                                                  : operand_.plane.layout.payload_dtype;
  return {kind, dtype, contracted};
}

TestOperand TestOperand::Rows(int64_t first_row, int64_t row_count) const {
  TestOperand result;
  const bool dense = operand_.dense.data != nullptr;
  const int64_t rows = dense ? operand_.dense.rows : operand_.plane.layout.payload_rows;
  const int64_t row_bytes = static_cast<int64_t>(payload_.size()) / rows;
  const auto payload = payload_.begin() + first_row * row_bytes;
  result.payload_.assign(payload, payload + row_count * row_bytes);
  if (dense) {
    result.operand_.dense = {result.payload_.data(), operand_.dense.dtype, row_count,
                             operand_.dense.columns};
    return result;
  }
  const PlaneLayout& from = operand_.plane.layout;
  const PlaneLayout layout =
      *Mxfp8LayoutFor(PlaneKind::kRow, {row_count, from.payload_columns}, from.payload_dtype);
  result.scales_.assign(static_cast<size_t>(layout.scale_bytes), 0);
  std::copy_n(scales_.begin() + first_row * from.scale_columns, row_count * from.scale_columns,
              result.scales_.begin());
  result.operand_.plane = {layout, result.payload_.data(), result.scales_.data()};
  result.UpdateExponents();
  return result;
}

uint8_t& TestOperand::Code(int64_t row, int64_t column) {
  return payload_[static_cast<size_t>(row * operand_.plane.layout.payload_columns + column)];
}

uint8_t& TestOperand::Scale(int64_t scale_row, int64_t scale_column) {
  return scales_[static_cast<size_t>(scale_row * operand_.plane.layout.scale_columns +
                                     scale_column)];
}

void TestOperand::UpdateExponents() { operand_.exponents = NonZeroExponents(operand_.plane); }

}  // namespace planewise
