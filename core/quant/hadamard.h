#ifndef PLANEWISE_CORE_QUANT_HADAMARD_H_
#define PLANEWISE_CORE_QUANT_HADAMARD_H_
// The Hadamard transform that spreads outliers of activations and gradients over
// their blocks before the column plane of NVFP4 is made. Both operands of the
// weight gradient are transformed alike, and what a sum over tokens makes of two
// transformed columns is what it makes of the columns themselves.
//
// Not here: which planes are transformed (quantize_spec.h).

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/numeric/bfloat16.h"

namespace planewise {

// Consecutive elements of a column that are transformed together.
inline constexpr int64_t kHadamardBlock = 16;

// Fixed signs in front of the transform: without them a constant column would end
// up in one element.
inline constexpr std::array<int8_t, kHadamardBlock> kHadamardSigns = {
    1, 1, 1, -1, 1, -1, -1, -1, -1, -1, -1, 1, -1, 1, -1, -1};

// values * diag(kHadamardSigns) * H / 4, H Sylvester's matrix of order 16 (entry
// [i, j] is +1 if i and j have an even number of set bits in common, else -1),
// each element rounded to BF16.
//
// Sums are made in F32, in this order: first the elements one apart, then those
// two, four and eight apart, after the multiplication with +-1/4.
constexpr std::array<float, kHadamardBlock> HadamardTransform(
    std::array<float, kHadamardBlock> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] *= 0.25f * static_cast<float>(kHadamardSigns[i]);
  }
  for (size_t distance = 1; distance < values.size(); distance *= 2) {
    for (size_t i = 0; i < values.size(); ++i) {
      if ((i & distance) != 0) continue;
      const float first = values[i];
      const float second = values[i + distance];
      values[i] = first + second;
      values[i + distance] = first - second;
    }
  }
  for (float& value : values) value = BFloat16::FromFloat(value).ToFloat();
  return values;
}

}  // namespace planewise

#endif  // PLANEWISE_CORE_QUANT_HADAMARD_H_
