#ifndef PLANEWISE_CORE_NUMERIC_FLOAT4_E2M1_H_
#define PLANEWISE_CORE_NUMERIC_FLOAT4_E2M1_H_
// E2M1: the 4-bit element type of NVFP4, and how two of them share a byte.
//
// Not here: scales; a code means nothing without the scale of its block.

#include <algorithm>
#include <bit>
#include <cstdint>

#include "core/numeric/small_float.h"

namespace planewise {

// Sign, 2 exponent bits (bias 1), 1 mantissa bit: the magnitudes 0, 0.5, 1, 1.5,
// 2, 3, 4 and 6, with no infinity and no NaN. The code is the low half of
// `bits`; the high half is 0.
struct Float4E2M1 {
  uint8_t bits = 0;

  static constexpr int kMantissaBits = 1;
  static constexpr int kBias = 1;
  static constexpr float kMax = 6.0f;
  static constexpr uint32_t kMaxCode = 0x7;
  static constexpr uint32_t kSignBit = 0x8;

  // Nearest, ties to even, then saturating: above 6, infinity included, gives 6.
  // Keeps the sign of zero and of what rounds to zero. NaN of either sign becomes
  // +6, since there is no code for it: as NVIDIA GPUs convert.
  static constexpr Float4E2M1 FromFloat(float value) {
    if (IsNan(value)) return {kMaxCode};
    const uint32_t sign = (std::bit_cast<uint32_t>(value) >> 28) & kSignBit;
    const uint32_t magnitude = std::min(RoundToSmallFloat<kMantissaBits, kBias>(value), kMaxCode);
    return {static_cast<uint8_t>(sign | magnitude)};
  }

  // Exact.
  constexpr float ToFloat() const {
    const float wide = WidenSmallFloat<kMantissaBits, kBias>(bits & kMaxCode);
    return (bits & kSignBit) != 0 ? -wide : wide;
  }

  bool operator==(const Float4E2M1&) const = default;
};

// Of two neighbours in memory, the one of even index lies in the low half of
// their byte.
constexpr uint8_t PackPair(Float4E2M1 even, Float4E2M1 odd) {
  return static_cast<uint8_t>(even.bits | odd.bits << 4);
}

// Element `index` of a packed array.
constexpr Float4E2M1 LoadPacked(const uint8_t* packed, int64_t index) {
  const uint32_t shift = index % 2 == 0 ? 0 : 4;
  return {static_cast<uint8_t>((packed[index / 2] >> shift) & 0xF)};
}

// Leaves the other element of the byte as it is.
constexpr void StorePacked(uint8_t* packed, int64_t index, Float4E2M1 element) {
  uint8_t& byte = packed[index / 2];
  byte = index % 2 == 0 ? static_cast<uint8_t>((byte & 0xF0) | element.bits)
                        : static_cast<uint8_t>((byte & 0x0F) | element.bits << 4);
}

}  // namespace planewise

#endif  // PLANEWISE_CORE_NUMERIC_FLOAT4_E2M1_H_
