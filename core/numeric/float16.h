#ifndef PLANEWISE_CORE_NUMERIC_FLOAT16_H_
#define PLANEWISE_CORE_NUMERIC_FLOAT16_H_
// F16: IEEE binary16, the type of some checkpoints and activations.
//
// Not here: arithmetic. Values are widened, computed in F32 and narrowed.

#include <algorithm>
#include <bit>
#include <cstdint>

#include "core/numeric/small_float.h"

namespace planewise {

// Sign, 5 exponent bits (bias 15), 10 mantissa bits: magnitudes from the
// subnormal 2^-24 to 65504, 11 significant bits. 0x7C00 is infinity, above it
// NaN. Two bytes, little-endian in memory and on the wire.
struct Float16 {
  uint16_t bits = 0;

  static constexpr int kMantissaBits = 10;
  static constexpr int kBias = 15;
  static constexpr uint32_t kInfinity = 0x7C00;

  // Nearest, ties to even; from 65520 on, infinity. Keeps the sign of zero.
  // Every NaN becomes 0x7FFF.
  static constexpr Float16 FromFloat(float value) {
    if (IsNan(value)) return {0x7FFF};
    const uint32_t sign = (std::bit_cast<uint32_t>(value) >> 16) & 0x8000;
    const uint32_t magnitude =
        std::min(RoundToSmallFloat<kMantissaBits, kBias>(value), kInfinity);
    return {static_cast<uint16_t>(sign | magnitude)};
  }

  // Exact; every NaN becomes kCanonicalNan.
  constexpr float ToFloat() const {
    const uint32_t magnitude = bits & 0x7FFFu;
    if (magnitude > kInfinity) return kCanonicalNan;
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
    const float wide = magnitude == kInfinity
                           ? std::bit_cast<float>(0x7F800000u)
                           : WidenSmallFloat<kMantissaBits, kBias>(magnitude);
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(wide));
  }

  bool operator==(const Float16&) const = default;
};
static_assert(sizeof(Float16) == 2);

}  // namespace planewise

#endif  // PLANEWISE_CORE_NUMERIC_FLOAT16_H_
