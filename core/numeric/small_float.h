#ifndef PLANEWISE_CORE_NUMERIC_SMALL_FLOAT_H_
#define PLANEWISE_CORE_NUMERIC_SMALL_FLOAT_H_
// What binary floats narrower than F32 share: rounding a magnitude to nearest
// even, and widening a code exactly. A code's exponent and mantissa bits, read
// as one integer, count the format's magnitudes in ascending order, subnormals
// first; both functions work on that integer.
//
// Not here: signs, NaN, infinity and saturation, which differ between formats
// (float16.h, float8_e4m3.h, float8_e5m2.h).

#include <bit>
#include <cstdint>

namespace planewise {

// The NaN that conversions to F32 give, as NVIDIA GPUs do: bytes of a result
// must not depend on which NaN came in.
inline constexpr float kCanonicalNan = std::bit_cast<float>(0x7FFFFFFFu);

// 2^exponent for -126 <= exponent <= 127.
constexpr float PowerOfTwo(int exponent) {
  return std::bit_cast<float>(static_cast<uint32_t>(exponent + 127) << 23);
}

constexpr uint32_t MagnitudeBits(float value) {
  return std::bit_cast<uint32_t>(value) & 0x7FFFFFFFu;
}

constexpr bool IsNan(float value) { return MagnitudeBits(value) > 0x7F800000u; }

// |value| rounded to nearest, ties to even, for any value but NaN. The format's
// exponent is taken as unbounded above: the caller cuts off what exceeds its
// largest code.
template <int kMantissaBits, int kBias>
constexpr uint32_t RoundToSmallFloat(float value) {
  const uint32_t bits = MagnitudeBits(value);
  constexpr int kDroppedBits = 23 - kMantissaBits;

  constexpr uint32_t kSmallestNormal = static_cast<uint32_t>(128 - kBias) << 23;
  if (bits < kSmallestNormal) {
    // Subnormals are multiples of one step. F32 values from kAnchor on have
    // that same step, so the addition rounds, and what it adds to the bits is
    // the number of steps.
    constexpr float kAnchor = PowerOfTwo(1 - kBias - kMantissaBits + 23);
    return std::bit_cast<uint32_t>(std::bit_cast<float>(bits) + kAnchor) -
           std::bit_cast<uint32_t>(kAnchor);
  }

  // Just under half of the last kept bit, or exactly half if that bit is odd.
  // A carry out of the mantissa runs into the exponent, where it belongs.
  const uint32_t last_kept_bit = (bits >> kDroppedBits) & 1;
  const uint32_t rounding = (1u << (kDroppedBits - 1)) - 1 + last_kept_bit;
  return ((bits + rounding) >> kDroppedBits) -
         (static_cast<uint32_t>(127 - kBias) << kMantissaBits);
}

// The magnitude that exponent and mantissa bits `code` stand for, exactly.
template <int kMantissaBits, int kBias>
constexpr float WidenSmallFloat(uint32_t code) {
  const uint32_t exponent = code >> kMantissaBits;
  if (exponent == 0) return static_cast<float>(code) * PowerOfTwo(1 - kBias - kMantissaBits);
  return std::bit_cast<float>((code << (23 - kMantissaBits)) +
                              (static_cast<uint32_t>(127 - kBias) << 23));
}

}  // namespace planewise

#endif  // PLANEWISE_CORE_NUMERIC_SMALL_FLOAT_H_
