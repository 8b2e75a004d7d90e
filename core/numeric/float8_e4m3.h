#ifndef PLANEWISE_CORE_NUMERIC_FLOAT8_E4M3_H_
#define PLANEWISE_CORE_NUMERIC_FLOAT8_E4M3_H_
// E4M3 (e4m3fn of OCP): the element type of every FP8 primary weight and of
// quantized activations.
//
// Not here: scales; a code means nothing without the scale of its block.

#include <algorithm>
#include <bit>
#include <cstdint>

#include "core/numeric/small_float.h"

namespace planewise {

// Sign, 4 exponent bits (bias 7), 3 mantissa bits: magnitudes from the
// subnormal 2^-9 to 448 = 1.75 * 2^8, 4 significant bits. No infinity: the one
// code above 448 is NaN (0x7F, 0xFF), and the exponent it would share is used
// for finite values.
struct Float8E4M3 {
  uint8_t bits = 0;

  static constexpr int kMantissaBits = 3;
  static constexpr int kBias = 7;
  static constexpr float kMax = 448.0f;
  static constexpr uint32_t kMaxCode = 0x7E;
  static constexpr uint32_t kSignBit = 0x80;

  // Nearest, ties to even, then saturating: above 448, infinity included, gives
  // the largest finite code. Keeps the sign of zero and of what rounds to zero.
  // NaN of either sign becomes 0x7F.
  static constexpr Float8E4M3 FromFloat(float value) {
    if (IsNan(value)) return {0x7F};
    const uint32_t sign = (std::bit_cast<uint32_t>(value) >> 24) & 0x80;
    const uint32_t magnitude = std::min(RoundToSmallFloat<kMantissaBits, kBias>(value), kMaxCode);
    return {static_cast<uint8_t>(sign | magnitude)};
  }

  // Exact; both NaN codes become kCanonicalNan.
  constexpr float ToFloat() const {
    const uint32_t magnitude = bits & 0x7Fu;
    if (magnitude > kMaxCode) return kCanonicalNan;
    const float wide = WidenSmallFloat<kMantissaBits, kBias>(magnitude);
    return (bits & 0x80u) != 0 ? -wide : wide;
  }

  bool operator==(const Float8E4M3&) const = default;
};
static_assert(sizeof(Float8E4M3) == 1);

}  // namespace planewise

#endif  // PLANEWISE_CORE_NUMERIC_FLOAT8_E4M3_H_
