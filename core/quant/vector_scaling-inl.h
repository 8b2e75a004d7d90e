// Scales in vectors: what largest magnitudes give, and what codes are multiplied by.
// For each format what the normative code does (mxfp8_block.h, fp8_scale.h,
// nvfp4_block.h), operation by operation. Compiled for each instruction set as part of
// the files that include it.
//
// Not here: whose magnitudes they are (vector_quantize-inl.h).

// Highway's guard: included once for each target.
#if defined(PLANEWISE_CORE_QUANT_VECTOR_SCALING_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLANEWISE_CORE_QUANT_VECTOR_SCALING_INL_H_
#undef PLANEWISE_CORE_QUANT_VECTOR_SCALING_INL_H_
#else
#define PLANEWISE_CORE_QUANT_VECTOR_SCALING_INL_H_
#endif

#include <bit>
#include <cstdint>
#include <limits>

#include "core/numeric/float4_e2m1.h"
#include "core/numeric/float8_e4m3.h"
#include "core/numeric/scale_e8m0.h"
#include "core/quant/fp8_scale.h"
#include "core/quant/nvfp4_block.h"
#include "core/quant/vector_small_float-inl.h"
#include "core/tensor/plane_layout.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace planewise {
namespace HWY_NAMESPACE {
#if HWY_TARGET != HWY_SCALAR

// Of each lane's block: the scale as it is stored (in the low byte, or the bits of an
// F32 number), and what elements are multiplied by.
struct BlockScales {
  U32 stored;
  F32 multiplier;
};

// A scaling has
//   Element, Stored      the types of codes and of stored scales
//   kBlock               elements along a block
//   Of(amax)             amaxes from 0 to infinity to BlockScales
//   FactorsOf(stored)    what codes under stored scales are multiplied by

HWY_INLINE hn::Mask<F32Tag> IsInfinite(F32 magnitudes) {
  return hn::Eq(magnitudes, hn::Set(F32Tag(), std::numeric_limits<float>::infinity()));
}

// As ScaleE8M0::ToFloat.
HWY_INLINE F32 PowersFromBiased(U32 exponents) {
  const U32Tag u32;
  constexpr uint32_t kTwoToMinus127 = 0x400000;
  const auto is_subnormal = hn::Eq(exponents, hn::Zero(u32));
  const auto is_nan = hn::Eq(exponents, hn::Set(u32, ScaleE8M0::kNan));
  const U32 powers =
      hn::IfThenElse(is_subnormal, hn::Set(u32, kTwoToMinus127), hn::ShiftLeft<23>(exponents));
  const U32 nan = hn::Set(u32, std::bit_cast<uint32_t>(kCanonicalNan));
  return hn::BitCast(F32Tag(), hn::IfThenElse(is_nan, nan, powers));
}

template <typename ElementType>
class Mxfp8Scaling {
 public:
  using Element = ElementType;
  using Stored = uint8_t;
  static constexpr int64_t kBlock = kMxfp8Block;

  BlockScales Of(F32 amax) const {
    const U32Tag u32;
    constexpr float kReciprocalOfMax = 1.0f / Element::kMax;
    const U32 bits = hn::BitCast(u32, hn::Mul(amax, hn::Set(F32Tag(), kReciprocalOfMax)));
    // Any mantissa bit carries into the exponent; among subnormals, only what lies
    // above 2^-127 does.
    const U32 rounded_up = hn::ShiftRight<23>(hn::Add(bits, hn::Set(u32, 0x7FFFFFu)));
    const U32 scales = hn::IfThenElseZero(IsAbove(bits, 0x400000u),
                                          hn::Min(rounded_up, hn::Set(u32, ScaleE8M0::kMax)));
    return {scales, PowersFromBiased(hn::Sub(hn::Set(u32, ScaleE8M0::kMax), scales))};
  }

  F32 FactorsOf(U32 stored) const { return PowersFromBiased(stored); }
};

template <typename ElementType>
class Fp8BlockScaling {
 public:
  using Element = ElementType;
  using Stored = uint32_t;
  static constexpr int64_t kBlock = kFp8Block;

  explicit Fp8BlockScaling(const Fp8ScaleRule& rule) : rule_(rule) {}

  BlockScales Of(F32 amax) const {
    const F32Tag f32;
    const U32Tag u32;
    const F32 one = hn::Set(f32, 1.0f);
    const F32 epsilon = hn::Set(f32, rule_.epsilon);
    amax = hn::IfThenElse(hn::Lt(amax, epsilon), epsilon, amax);
    F32 scale = hn::Div(hn::Set(f32, rule_.element_max), amax);
    scale = hn::IfThenElse(IsInfinite(scale), hn::Set(f32, rule_.largest_scale), scale);
    if (rule_.power_of_two) {
      const U32 exponent = hn::And(hn::BitCast(u32, scale), hn::Set(u32, 0x7F800000u));
      scale = hn::BitCast(f32, exponent);
    }
    const auto none_fits = hn::Or(hn::Eq(amax, hn::Zero(f32)), IsInfinite(amax));
    scale = hn::IfThenElse(none_fits, one, scale);
    return {hn::BitCast(u32, hn::Div(one, scale)), scale};
  }

  F32 FactorsOf(U32 stored) const { return hn::BitCast(F32Tag(), stored); }

 private:
  Fp8ScaleRule rule_;
};

// One scale for all elements, which is known.
template <typename ElementType>
class PerTensorScaling {
 public:
  using Element = ElementType;

  explicit PerTensorScaling(float multiplier) : multiplier_(multiplier) {}

  float multiplier() const { return multiplier_; }

 private:
  float multiplier_;
};

// Of a plane whose largest magnitude is `amax`.
class Nvfp4PlaneScaling {
 public:
  using Element = Float4E2M1;
  using Stored = uint8_t;
  static constexpr int64_t kBlock = kNvfp4Block;

  explicit Nvfp4PlaneScaling(float amax) : amax_(amax), scaling_(amax) {}

  float amax() const { return amax_; }

  BlockScales Of(F32 amax) const {
    const F32Tag f32;
    // Infinity has the code of the largest number, as it has cut to that.
    const U32 scales = CodesOf<Float8E4M3>(hn::Mul(amax, hn::Set(f32, scaling_.block_factor())));
    const U32 stored = hn::And(scales, hn::Set(U32Tag(), 0xFFu));
    const F32 decode = hn::Mul(WidenCodes<Float8E4M3>(stored), hn::Set(f32, scaling_.decode()));
    const F32 largest = hn::Set(f32, std::numeric_limits<float>::max());
    return {stored, hn::Min(hn::Div(hn::Set(f32, 1.0f), decode), largest)};
  }

  F32 FactorsOf(U32 stored) const {
    const F32Tag f32;
    constexpr float kUndoesEncoding = 1.0f / (Float8E4M3::kMax * Float4E2M1::kMax);
    return hn::Mul(hn::Mul(WidenCodes<Float8E4M3>(stored), hn::Set(f32, amax_)),
                   hn::Set(f32, kUndoesEncoding));
  }

 private:
  float amax_;
  Nvfp4Scaling scaling_;
};

#endif  // HWY_TARGET != HWY_SCALAR
}  // namespace HWY_NAMESPACE
}  // namespace planewise
HWY_AFTER_NAMESPACE();

#endif  // PLANEWISE_CORE_QUANT_VECTOR_SCALING_INL_H_
