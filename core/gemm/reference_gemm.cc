#include "core/gemm/reference_gemm.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace planewise {
namespace {

// sign, exponent_bits, mantissa_bits of a small float; the last exponent is
// ordinary unless `ieee`.
double DecodeFloat(uint32_t code, int exponent_bits, int mantissa_bits, bool ieee) {
  const uint32_t mantissa = code & ((1u << mantissa_bits) - 1);
  const uint32_t exponent = (code >> mantissa_bits) & ((1u << exponent_bits) - 1);
  const double sign = (code >> (mantissa_bits + exponent_bits)) != 0 ? -1.0 : 1.0;
  const uint32_t last = (1u << exponent_bits) - 1;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  if (exponent == last && ieee) {
    return mantissa == 0 ? sign * std::numeric_limits<double>::infinity() : std::nan("");
  }
  const double fraction = std::ldexp(mantissa, -mantissa_bits);
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias);
  return sign * std::ldexp(1.0 + fraction, static_cast<int>(exponent) - bias);
}

double DecodeCode(DType element, uint8_t code) {
  if (element == DType::kF8E5M2) return DecodeFloat(code, 5, 2, true);
  if ((code & 0x7F) == 0x7F) return std::nan("");
  return DecodeFloat(code, 4, 3, false);
}

// The nearest number of that many significant bits and not below that step,
// ties to even; infinity from `overflow` on.
double RoundDouble(double value, int bits, int smallest_exponent, double overflow) {
  if (value == 0 || !std::isfinite(value)) return value;
  int exponent = 0;
  std::frexp(value, &exponent);  // value = f * 2^exponent, f in [0.5, 1)
  const int step = std::max(exponent - bits, smallest_exponent);
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(value, -step)), step);
  if (std::abs(rounded) < overflow) return rounded;
  return std::copysign(std::numeric_limits<double>::infinity(), value);
}

double RoundTo(DType dtype, double value) {
  switch (dtype) {
    case DType::kBF16: return RoundDouble(value, 8, -133, 0x1p128);
    case DType::kF16: return RoundDouble(value, 11, -24, 0x1p16);
    default: return RoundDouble(value, 24, -149, 0x1p128);
  }
}

double ReadPlane(const ConstPlaneSpan& plane, int64_t row, int64_t column) {
  const PlaneLayout& layout = plane.layout;
  const bool row_blocks = layout.kind == PlaneKind::kRow;
  const int64_t scale_row = row_blocks ? row : row / 32;
  const int64_t scale_column = row_blocks ? column / 32 : column;
  const uint8_t scale = plane.scales[scale_row * layout.scale_columns + scale_column];
  if (scale == 255) return std::nan("");
  const uint8_t code = plane.payload[row * layout.payload_columns + column];
  return std::ldexp(DecodeCode(layout.payload_dtype, code), scale - 127);
}

bool IsBf16Subnormal(double value) { return value != 0 && std::abs(value) < 0x1p-126; }

}  // namespace

double ReadElement(DType dtype, const void* data, int64_t index) {
  if (dtype == DType::kF32) return static_cast<const float*>(data)[index];
  uint16_t code = 0;
  std::memcpy(&code, static_cast<const char*>(data) + 2 * index, sizeof(code));
  return dtype == DType::kF16 ? DecodeFloat(code, 5, 10, true) : DecodeFloat(code, 8, 7, true);
}

ReferenceOperand ReadReference(const OperandFormat& format, const GemmOperand& operand,
                               DType value_dtype, int64_t rows, int64_t k) {
  ReferenceOperand result{rows, k, {}};
  result.elements.reserve(static_cast<size_t>(rows * k));
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t p = 0; p < k; ++p) {
      const bool along_columns = format.contracted == Contracted::kColumns;
      const int64_t i = along_columns ? row : p;
      const int64_t j = along_columns ? p : row;
      double value = 0;
      switch (format.kind) {
        case OperandKind::kDense:
          value = ReadElement(format.dtype, operand.dense.data, i * operand.dense.columns + j);
          value = RoundTo(value_dtype, value);
          break;
        case OperandKind::kCodes: value = ReadPlane(operand.plane, i, j); break;
        case OperandKind::kValues:
          // Dequantizing rounds to F32 before it rounds to the value type.
          value = RoundTo(value_dtype, RoundTo(DType::kF32, ReadPlane(operand.plane, i, j)));
          break;
      }
      result.elements.push_back(value);
    }
  }
  return result;
}

ReferenceElement MultiplyReference(const ReferenceOperand& a, int64_t row,
                                   const ReferenceOperand& b, int64_t column) {
  ReferenceElement element;
  for (int64_t p = 0; p < a.k; ++p) {
    const double x = a.at(row, p);
    const double y = b.at(column, p);
    element.sum += x * y;
    element.magnitude += std::abs(x * y);
    if (IsBf16Subnormal(x) || IsBf16Subnormal(y)) element.subnormal += std::abs(x * y);
  }
  return element;
}

}  // namespace planewise
