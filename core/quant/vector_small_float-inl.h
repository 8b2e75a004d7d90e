// Narrow floats in vectors: loads, rounding, widening and stores, compiled for
// each instruction set as part of vector_quantizer.cc.
//
// Elements travel in pairs of F32 vectors, whose order only the loads and stores
// here know. Elements of 16 bits are split into even and odd ones, which takes
// shifts and masks but no permutation; F32 into first and second half.
//
// Not here: blocks and planes.

// Highway's guard: included once for each target.
#if defined(PLANEWISE_CORE_QUANT_VECTOR_SMALL_FLOAT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLANEWISE_CORE_QUANT_VECTOR_SMALL_FLOAT_INL_H_
#undef PLANEWISE_CORE_QUANT_VECTOR_SMALL_FLOAT_INL_H_
#else
#define PLANEWISE_CORE_QUANT_VECTOR_SMALL_FLOAT_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/numeric/bfloat16.h"
#include "core/numeric/float16.h"
#include "core/numeric/small_float.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace planewise {
namespace HWY_NAMESPACE {
#if HWY_TARGET != HWY_SCALAR

namespace hn = hwy::HWY_NAMESPACE;

// One F32 vector, its bits, and twice as many 16-bit elements.
using F32Tag = hn::CappedTag<float, 16>;
using U32Tag = hn::RebindToUnsigned<F32Tag>;
using U16Tag = hn::Repartition<uint16_t, F32Tag>;
using F32 = hn::Vec<F32Tag>;
using U32 = hn::Vec<U32Tag>;
using U16 = hn::Vec<U16Tag>;

struct F32Pair {
  F32 first;
  F32 second;
};
struct U32Pair {
  U32 first;
  U32 second;
};

// Elements in a pair. A block of 32 is a whole number of pairs.
HWY_INLINE int64_t PairLanes() { return static_cast<int64_t>(2 * hn::Lanes(F32Tag())); }

// The bits of a high-precision type as an integer. Without the sign they are in
// the order of the magnitudes: finite, infinity, NaN.
template <typename HighPrecision>
using BitsOf = std::conditional_t<sizeof(HighPrecision) == 4, uint32_t, uint16_t>;

template <typename HighPrecision>
constexpr BitsOf<HighPrecision> kMagnitudeMask = static_cast<BitsOf<HighPrecision>>(~0u) >> 1;

template <typename HighPrecision>
constexpr BitsOf<HighPrecision> kInfinityBits =
    std::is_same_v<HighPrecision, float>      ? 0x7F800000u
    : std::is_same_v<HighPrecision, BFloat16> ? 0x7F80u
                                              : Float16::kInfinity;

template <typename HighPrecision>
const BitsOf<HighPrecision>* Bits(const HighPrecision* values) {
  return reinterpret_cast<const BitsOf<HighPrecision>*>(values);
}
template <typename HighPrecision>
BitsOf<HighPrecision>* Bits(HighPrecision* values) {
  return reinterpret_cast<BitsOf<HighPrecision>*>(values);
}

// Exponent and mantissa bits of `magnitude` in a narrow format, rounded to
// nearest even: in the low 8 bits of each lane, or 16 where the format needs
// more than 8; above them anything. For magnitudes up to the format's largest.
//
// As RoundToSmallFloat, with one path for normals and subnormals: adding a power
// of two that lies as many exponents up as bits are dropped makes the sum round
// to the format's step at that magnitude, and counts the steps in its low bits.
// Below the smallest normal the step no longer shrinks. The anchor's own low bits
// bring in the difference of the exponent biases; they are even, which leaves
// ties as they are.
template <int kMantissaBits, int kBias>
HWY_INLINE U32 RoundToSmallFloats(F32 magnitude) {
  const U32Tag u32;
  constexpr int kDroppedBits = 23 - kMantissaBits;
  constexpr uint32_t kSmallestNormal = static_cast<uint32_t>(128 - kBias);
  constexpr uint32_t kCodeMask = kMantissaBits < 8 ? 0xFF : 0xFFFF;
  constexpr uint32_t kRebias = (0u - (kSmallestNormal << kMantissaBits)) & kCodeMask;
  constexpr uint32_t kToAnchor = (static_cast<uint32_t>(kDroppedBits) << 23) + kRebias;
  const U32 exponent = hn::Max(hn::And(hn::BitCast(u32, magnitude), hn::Set(u32, 0x7F800000u)),
                               hn::Set(u32, kSmallestNormal << 23));
  const F32 anchor = hn::BitCast(F32Tag(), hn::Add(exponent, hn::Set(u32, kToAnchor)));
  const U32 steps = hn::BitCast(u32, hn::Add(magnitude, anchor));
  return hn::Add(steps, hn::ShiftRight<kDroppedBits>(exponent));
}

// As WidenSmallFloat: the value of lanes that hold exponent and mantissa bits.
template <int kMantissaBits, int kBias>
HWY_INLINE F32 WidenSmallFloats(U32 code) {
  const F32Tag f32;
  const U32Tag u32;
  const U32 normal = hn::Add(hn::ShiftLeft<23 - kMantissaBits>(code),
                             hn::Set(u32, static_cast<uint32_t>(127 - kBias) << 23));
  const F32 subnormal =
      hn::Mul(hn::ConvertTo(f32, hn::BitCast(hn::RebindToSigned<U32Tag>(), code)),
              hn::Set(f32, PowerOfTwo(1 - kBias - kMantissaBits)));
  return hn::IfThenElse(
      hn::RebindMask(f32, hn::Lt(code, hn::Set(u32, 1u << kMantissaBits))), subnormal,
      hn::BitCast(f32, normal));
}

// The two halves of each lane: even and odd elements.
HWY_INLINE U32Pair Split(U16 elements) {
  const U32Tag u32;
  const U32 both = hn::BitCast(u32, elements);
  return {hn::And(both, hn::Set(u32, 0xFFFFu)), hn::ShiftRight<16>(both)};
}

// The low halves of the lanes as even and odd elements.
HWY_INLINE U16 Join(U32Pair lanes) {
  const U16Tag u16;
  return hn::OddEven(hn::BitCast(u16, hn::ShiftLeft<16>(lanes.second)),
                     hn::BitCast(u16, lanes.first));
}

// Magnitudes of a pair of elements; of F16, finite ones only.
HWY_INLINE F32Pair LoadMagnitudes(const float* values) {
  const F32Tag f32;
  return {hn::Abs(hn::LoadU(f32, values)), hn::Abs(hn::LoadU(f32, values + hn::Lanes(f32)))};
}
HWY_INLINE F32Pair LoadMagnitudes(const BFloat16* values) {
  const F32Tag f32;
  const U32Tag u32;
  const U16Tag u16;
  const U32 both = hn::BitCast(
      u32, hn::And(hn::LoadU(u16, Bits(values)), hn::Set(u16, kMagnitudeMask<BFloat16>)));
  return {hn::BitCast(f32, hn::ShiftLeft<16>(both)),
          hn::BitCast(f32, hn::And(both, hn::Set(u32, 0xFFFF0000u)))};
}
HWY_INLINE F32Pair LoadMagnitudes(const Float16* values) {
  const U16Tag u16;
  const U32Pair codes =
      Split(hn::And(hn::LoadU(u16, Bits(values)), hn::Set(u16, kMagnitudeMask<Float16>)));
  return {WidenSmallFloats<Float16::kMantissaBits, Float16::kBias>(codes.first),
          WidenSmallFloats<Float16::kMantissaBits, Float16::kBias>(codes.second)};
}

// Bytes that belong to a pair of elements of type HighPrecision, one a lane.
template <typename HighPrecision>
HWY_INLINE U32Pair LoadBytes(const uint8_t* bytes) {
  if constexpr (sizeof(HighPrecision) == 2) {
    const hn::Rebind<uint8_t, U16Tag> u8;
    return Split(hn::PromoteTo(U16Tag(), hn::LoadU(u8, bytes)));
  } else {
    const hn::Rebind<uint8_t, U32Tag> u8;
    return {hn::PromoteTo(U32Tag(), hn::LoadU(u8, bytes)),
            hn::PromoteTo(U32Tag(), hn::LoadU(u8, bytes + hn::Lanes(u8)))};
  }
}

// The low byte of each lane, beside the elements of type HighPrecision that the
// lanes belong to.
template <typename HighPrecision>
HWY_INLINE void StoreBytes(U32Pair lanes, uint8_t* bytes) {
  if constexpr (sizeof(HighPrecision) == 2) {
    const hn::Rebind<uint8_t, U16Tag> u8;
    hn::StoreU(hn::TruncateTo(u8, Join(lanes)), u8, bytes);
  } else {
    const hn::Rebind<uint8_t, U32Tag> u8;
    hn::StoreU(hn::TruncateTo(u8, lanes.first), u8, bytes);
    hn::StoreU(hn::TruncateTo(u8, lanes.second), u8, bytes + hn::Lanes(u8));
  }
}

// As StoreBytes, with the sign of each element of `source` in bit 7, which the
// lanes leave clear.
template <typename HighPrecision>
HWY_INLINE void StoreSignedBytes(U32Pair lanes, const HighPrecision* source, uint8_t* bytes) {
  if constexpr (sizeof(HighPrecision) == 2) {
    const U16Tag u16;
    const hn::Rebind<uint8_t, U16Tag> u8;
    const U16 signs = hn::ShiftRight<8>(hn::LoadU(u16, Bits(source)));
    hn::StoreU(hn::TruncateTo(u8, hn::OrAnd(Join(lanes), signs, hn::Set(u16, 0x80))), u8, bytes);
  } else {
    const auto with_sign = [](U32 lane, const float* values) {
      const U32Tag u32;
      const U32 signs = hn::ShiftRight<24>(hn::LoadU(u32, Bits(values)));
      return hn::OrAnd(lane, signs, hn::Set(u32, 0x80u));
    };
    StoreBytes<float>({with_sign(lanes.first, source),
                       with_sign(lanes.second, source + hn::Lanes(U32Tag()))},
                      bytes);
  }
}

// Narrows as Narrow() does, one NaN for all, and stores.
HWY_INLINE void StoreNarrow(F32Pair lanes, float* values) {
  const F32Tag f32;
  hn::StoreU(lanes.first, f32, values);
  hn::StoreU(lanes.second, f32, values + hn::Lanes(f32));
}
HWY_INLINE void StoreNarrow(F32Pair lanes, BFloat16* values) {
  const auto narrow = [](F32 lane) {
    const U32Tag u32;
    const U32 bits = hn::BitCast(u32, lane);
    const U32 last_kept_bit = hn::And(hn::ShiftRight<16>(bits), hn::Set(u32, 1u));
    const U32 rounded =
        hn::ShiftRight<16>(hn::Add(hn::Add(bits, hn::Set(u32, 0x7FFFu)), last_kept_bit));
    return hn::IfThenElse(hn::RebindMask(u32, hn::IsNaN(lane)), hn::Set(u32, 0x7FFFu), rounded);
  };
  hn::StoreU(Join({narrow(lanes.first), narrow(lanes.second)}), U16Tag(), Bits(values));
}
HWY_INLINE void StoreNarrow(F32Pair lanes, Float16* values) {
  const auto narrow = [](F32 lane) {
    const F32Tag f32;
    const U32Tag u32;
    // What exceeds the largest finite value by half a step rounds to 2^16, whose
    // code is that of infinity.
    const F32 magnitude = hn::Min(hn::Abs(lane), hn::Set(f32, 65536.0f));
    const U32 rounded = RoundToSmallFloats<Float16::kMantissaBits, Float16::kBias>(magnitude);
    const U32 signs = hn::ShiftRight<16>(hn::BitCast(u32, lane));
    return hn::IfThenElse(hn::RebindMask(u32, hn::IsNaN(lane)), hn::Set(u32, 0x7FFFu),
                          hn::OrAnd(rounded, signs, hn::Set(u32, 0x8000u)));
  };
  hn::StoreU(Join({narrow(lanes.first), narrow(lanes.second)}), U16Tag(), Bits(values));
}

// A pair as it lies in registers, to and from scratch memory.
HWY_INLINE void StorePair(F32Pair pair, float* scratch) { StoreNarrow(pair, scratch); }
HWY_INLINE F32Pair LoadPair(const float* scratch) {
  const F32Tag f32;
  return {hn::LoadU(f32, scratch), hn::LoadU(f32, scratch + hn::Lanes(f32))};
}

// The largest lane: halves folded down to what one instruction reduces.
template <class D, class V>
HWY_INLINE hn::TFromD<D> LargestLane(D d, V lanes) {
  if constexpr (hn::MaxLanes(D()) * sizeof(hn::TFromD<D>) > 16) {
    const hn::Half<D> half;
    return LargestLane(half, hn::Max(hn::LowerHalf(half, lanes), hn::UpperHalf(half, lanes)));
  } else {
    return hn::GetLane(hn::MaxOfLanes(d, lanes));
  }
}

#endif  // HWY_TARGET != HWY_SCALAR
}  // namespace HWY_NAMESPACE
}  // namespace planewise
HWY_AFTER_NAMESPACE();

#endif  // PLANEWISE_CORE_QUANT_VECTOR_SMALL_FLOAT_INL_H_
