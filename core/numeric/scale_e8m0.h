#ifndef PLANEWISE_CORE_NUMERIC_SCALE_E8M0_H_
#define PLANEWISE_CORE_NUMERIC_SCALE_E8M0_H_
// E8M0: the power-of-two scale of an MXFP8 block.
//
// Not here: which number a block's scale is made from (core/quant/mxfp8_block.h).

#include <bit>
#include <cstdint>

#include "core/numeric/small_float.h"

namespace planewise {

// A biased exponent and nothing else: byte b means 2^(b - 127), from 2^-127
// (an F32 subnormal) to 2^127; 255 is NaN. There is no zero: a block of zeros
// has b = 0 and codes of zero.
struct ScaleE8M0 {
  uint8_t bits = 0;

  static constexpr uint8_t kMax = 254;
  static constexpr uint8_t kNan = 255;

  // The smallest power of two that is not below `value` >= 0. Zero gives 0;
  // above 2^127, infinity included, 254; NaN 255.
  static constexpr ScaleE8M0 RoundUp(float value) {
    if (IsNan(value)) return {kNan};
    const uint32_t exponent = MagnitudeBits(value) >> 23;
    const uint32_t mantissa = MagnitudeBits(value) & 0x7FFFFFu;
    // F32 has no exponent for 2^-127: it is the subnormal of half the mantissa.
    if (exponent == 0) return {static_cast<uint8_t>(mantissa > kMantissaOfTwoToMinus127 ? 1 : 0)};
    if (exponent >= kMax) return {kMax};
    return {static_cast<uint8_t>(mantissa == 0 ? exponent : exponent + 1)};
  }

  // 2^(b - 127), what a code is multiplied by.
  constexpr float ToFloat() const { return PowerFromBiased(bits); }

  // 2^(127 - b), what an element is multiplied by before it becomes a code. For
  // b = 254 that is the subnormal 2^-127, never flushed. NaN for 255.
  constexpr float EncodeMultiplier() const {
    return bits == kNan ? kCanonicalNan : PowerFromBiased(static_cast<uint8_t>(kMax - bits));
  }

  bool operator==(const ScaleE8M0&) const = default;

 private:
  static constexpr uint32_t kMantissaOfTwoToMinus127 = 0x400000;

  static constexpr float PowerFromBiased(uint8_t exponent) {
    if (exponent == kNan) return kCanonicalNan;
    if (exponent == 0) return std::bit_cast<float>(kMantissaOfTwoToMinus127);
    return std::bit_cast<float>(static_cast<uint32_t>(exponent) << 23);
  }
};
static_assert(sizeof(ScaleE8M0) == 1);

}  // namespace planewise

#endif  // PLANEWISE_CORE_NUMERIC_SCALE_E8M0_H_
