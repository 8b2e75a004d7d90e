#ifndef PLANEWISE_CORE_NUMERIC_FLOAT8_E5M2_H_
#define PLANEWISE_CORE_NUMERIC_FLOAT8_E5M2_H_
// E5M2: the element type of quantized gradients under the hybrid FP8 format,
// which trades a mantissa bit of E4M3 for range.
//
// Not here: scales; a code means nothing without the scale of its block.

#include <algorithm>
#include <bit>
#include <cstdint>

#include "core/numeric/small_float.h"

namespace planewise {

// Sign, 5 exponent bits (bias 15), 2 mantissa bits: magnitudes from the
// subnormal 2^-16 to 57344 = 1.75 * 2^15, 3 significant bits. 0x7C is infinity,
// 0x7D to 0x7F are NaN, as in the upper byte of an F16.
struct Float8E5M2 {
  uint8_t bits = 0;

  static constexpr int kMantissaBits = 2;
  static constexpr int kBias = 15;
  static constexpr float kMax = 57344.0f;
  static constexpr uint32_t kMaxCode = 0x7B;
  static constexpr uint32_t kInfinity = 0x7C;
  static constexpr uint32_t kSignBit = 0x80;

  // Nearest, ties to even, then saturating: above 57344, infinity included,
  // gives the largest finite code, so the code for infinity is never made.
  // Keeps the sign of zero and of what rounds to zero. NaN of either sign
  // becomes 0x7F.
  static constexpr Float8E5M2 FromFloat(float value) {
    if (IsNan(value)) return {0x7F};
    const uint32_t sign = (std::bit_cast<uint32_t>(value) >> 24) & 0x80;
    const uint32_t magnitude = std::min(RoundToSmallFloat<kMantissaBits, kBias>(value), kMaxCode);
    return {static_cast<uint8_t>(sign | magnitude)};
  }

  // Exact; all NaN codes become kCanonicalNan. Infinity can occur in planes
  // that another program wrote.
  constexpr float ToFloat() const {
    const uint32_t magnitude = bits & 0x7Fu;
    if (magnitude > kInfinity) return kCanonicalNan;
    const float wide = magnitude == kInfinity ? std::bit_cast<float>(0x7F800000u)
                                              : WidenSmallFloat<kMantissaBits, kBias>(magnitude);
    return (bits & 0x80u) != 0 ? -wide : wide;
  }

  bool operator==(const Float8E5M2&) const = default;
};
static_assert(sizeof(Float8E5M2) == 1);

}  // namespace planewise

#endif  // PLANEWISE_CORE_NUMERIC_FLOAT8_E5M2_H_
