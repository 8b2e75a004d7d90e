#ifndef PLANEWISE_CORE_QUANT_NVFP4_BLOCK_H_
#define PLANEWISE_CORE_QUANT_NVFP4_BLOCK_H_
// The arithmetic of NVFP4: E2M1 elements under an E4M3 scale for 16 of them, under
// one F32 number for the plane. The normative statement in code of what
// core/numeric/NUMERICS.md says in words; the order of operations is part of it.
//
// Not here: which elements are a block (plane_geometry.h).

#include <algorithm>
#include <limits>

#include "core/numeric/float4_e2m1.h"
#include "core/numeric/float8_e4m3.h"

namespace planewise {

// The scaling of a plane whose largest magnitude is `tensor_amax`: such that the
// block which holds it has the largest scale.
class Nvfp4Scaling {
 public:
  explicit Nvfp4Scaling(float tensor_amax)
      : decode_(1.0f / EncodeScale(tensor_amax)),
        // Not amax * encode / 6 later on: scales depend on the association.
        block_factor_(EncodeScale(tensor_amax) * (1.0f / Float4E2M1::kMax)) {}

  // The scale of a block whose largest magnitude is `amax`. It can round to 0.
  Float8E4M3 ScaleOf(float amax) const {
    return Float8E4M3::FromFloat(std::min(amax * block_factor_, kLargest));
  }

  // What elements under `scale` are multiplied by. Under a scale of 0 whatever is
  // not 0 saturates, and is 0 when it is read.
  float Multiplier(Float8E4M3 scale) const {
    return std::min(1.0f / (scale.ToFloat() * decode_), kLargest);
  }

  // What the two above are made with, for code that does the same in vectors.
  float block_factor() const { return block_factor_; }
  float decode() const { return decode_; }

 private:
  static constexpr float kLargest = std::numeric_limits<float>::max();

  static float EncodeScale(float tensor_amax) {
    if (tensor_amax == 0.0f) return 1.0f;
    const float encode = std::min(Float8E4M3::kMax * Float4E2M1::kMax / tensor_amax, kLargest);
    return encode == 0.0f ? 1.0f : encode;  // of an infinite magnitude
  }

  float decode_;
  float block_factor_;
};

// What codes under `scale` are multiplied by, in a plane of `tensor_amax`. Not the
// reciprocal of what made them: it rounds once less.
inline float Nvfp4Factor(Float8E4M3 scale, float tensor_amax) {
  return scale.ToFloat() * tensor_amax * (1.0f / (Float8E4M3::kMax * Float4E2M1::kMax));
}

}  // namespace planewise

#endif  // PLANEWISE_CORE_QUANT_NVFP4_BLOCK_H_
