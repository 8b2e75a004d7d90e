#ifndef PLANEWISE_CORE_QUANT_MXFP8_BLOCK_H_
#define PLANEWISE_CORE_QUANT_MXFP8_BLOCK_H_
// The arithmetic of MXFP8, one block at a time: the normative statement in code
// of what core/numeric/NUMERICS.md says in words. The order of operations is
// part of it.
//
// A block is up to 32 elements, `stride` elements apart, in the matrix and in
// the payload alike: 1 apart for a row plane, a row apart for a column plane.
//
// Not here: which blocks a plane has (scalar_quantizer.cc).

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "core/numeric/scale_e8m0.h"
#include "core/numeric/small_float.h"

namespace planewise {

// The value of a high-precision element (float, BFloat16 or Float16), exactly.
template <typename HighPrecision>
constexpr float Widen(HighPrecision value) {
  if constexpr (std::is_same_v<HighPrecision, float>) {
    return value;
  } else {
    return value.ToFloat();
  }
}

// The element nearest to `value`; every NaN becomes one NaN.
template <typename HighPrecision>
constexpr HighPrecision Narrow(float value) {
  if constexpr (std::is_same_v<HighPrecision, float>) {
    return IsNan(value) ? kCanonicalNan : value;
  } else {
    return HighPrecision::FromFloat(value);
  }
}

// The scale of a block whose largest magnitude is `amax`: such that amax, divided
// by it, does not exceed the element's largest value. In F32: for the number just
// above max * 2^-127 the product is rounded down, and the exact quotient would have
// the next scale. (A quotient rounded to F32 has the product's scale for every amax.)
template <typename Element>
constexpr ScaleE8M0 Mxfp8Scale(float amax) {
  constexpr float kReciprocalOfMax = 1.0f / Element::kMax;
  return ScaleE8M0::RoundUp(amax * kReciprocalOfMax);
}

// Writes the codes of `count` elements and returns their scale.
template <typename Element, typename HighPrecision>
ScaleE8M0 QuantizeMxfp8Block(const HighPrecision* source, int64_t count, int64_t stride,
                             Element* codes) {
  float amax = 0.0f;
  for (int64_t i = 0; i < count; ++i) {
    const float magnitude = std::fabs(Widen(source[i * stride]));
    if (magnitude > amax) amax = magnitude;  // Never true of NaN, which is skipped.
  }
  const ScaleE8M0 scale = Mxfp8Scale<Element>(amax);
  const float multiplier = scale.EncodeMultiplier();
  for (int64_t i = 0; i < count; ++i) {
    codes[i * stride] = Element::FromFloat(Widen(source[i * stride]) * multiplier);
  }
  return scale;
}

// Writes the values of `count` codes under one scale.
template <typename Element, typename HighPrecision>
void DequantizeMxfp8Block(const Element* codes, ScaleE8M0 scale, int64_t count, int64_t stride,
                          HighPrecision* values) {
  const float factor = scale.ToFloat();
  for (int64_t i = 0; i < count; ++i) {
    values[i * stride] = Narrow<HighPrecision>(codes[i * stride].ToFloat() * factor);
  }
}

}  // namespace planewise

#endif  // PLANEWISE_CORE_QUANT_MXFP8_BLOCK_H_
