#ifndef PLANEWISE_CORE_NUMERIC_BFLOAT16_H_
#define PLANEWISE_CORE_NUMERIC_BFLOAT16_H_
// BF16: the upper half of an F32, the usual type of activations and weights.
//
// Not here: arithmetic. Values are widened, computed in F32 and narrowed.

#include <bit>
#include <cstdint>

#include "core/numeric/small_float.h"

namespace planewise {

// Sign, 8 exponent bits (bias 127), 7 mantissa bits: the range of F32 with
// subnormals down to 2^-133, 8 significant bits. Infinities and NaN as in F32.
// Two bytes, little-endian in memory and on the wire.
struct BFloat16 {
  uint16_t bits = 0;

  // Nearest, ties to even; from half a step above the largest finite value on,
  // infinity. Keeps the sign of zero. Every NaN becomes 0x7FFF.
  static constexpr BFloat16 FromFloat(float value) {
    if (IsNan(value)) return {0x7FFF};
    const uint32_t wide = std::bit_cast<uint32_t>(value);
    const uint32_t last_kept_bit = (wide >> 16) & 1;
    return {static_cast<uint16_t>((wide + 0x7FFF + last_kept_bit) >> 16)};
  }

  constexpr float ToFloat() const {
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }

  bool operator==(const BFloat16&) const = default;
};
static_assert(sizeof(BFloat16) == 2);

}  // namespace planewise

#endif  // PLANEWISE_CORE_NUMERIC_BFLOAT16_H_
