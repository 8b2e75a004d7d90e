#ifndef PLANEWISE_CORE_QUANT_FP8_SCALE_H_
#define PLANEWISE_CORE_QUANT_FP8_SCALE_H_
// From a largest magnitude to an F32 scale: the rule that the per-tensor formats
// and block FP8 share. What is stored is the decode scale; an element is
// multiplied by the encode scale before it becomes a code.
//
// Not here: which elements share a scale.

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/numeric/dtype.h"

namespace planewise {

struct Fp8ScaleRule {
  float element_max = 0;      // of the codes
  bool power_of_two = false;  // the scale is rounded down to one
  float epsilon = 0;          // the smallest amax that counts
  // What stands for a quotient beyond F32.
  float largest_scale = std::numeric_limits<float>::max();
};

// `largest_scale` of a block: the largest finite number of the type that the
// matrix comes in. Per-tensor scales go up to F32's whatever that type.
constexpr float LargestBlockScale(DType source) {
  if (source == DType::kBF16) return std::bit_cast<float>(0x7F7F0000u);
  if (source == DType::kF16) return 65504.0f;
  return std::numeric_limits<float>::max();
}

// What elements are multiplied by. The order is part of the contract: epsilon
// first, so that it also replaces an amax of 0; then 1 for what no scale fits (0,
// infinity, NaN); the cut before the power of two.
inline float EncodeScale(float amax, const Fp8ScaleRule& rule) {
  if (amax < rule.epsilon) amax = rule.epsilon;
  if (amax == 0.0f || !std::isfinite(amax)) return 1.0f;
  float scale = rule.element_max / amax;
  if (std::isinf(scale)) scale = rule.largest_scale;
  if (!rule.power_of_two) return scale;
  constexpr uint32_t kSignAndExponent = 0xFF800000;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(scale) & kSignAndExponent);
}

// What codes are multiplied by: stored, and called scale_inv by others.
inline float DecodeScale(float encode_scale) { return 1.0f / encode_scale; }

}  // namespace planewise

#endif  // PLANEWISE_CORE_QUANT_FP8_SCALE_H_
