// Narrow floats in vectors: loads, rounding, widening and stores, compiled for
// each instruction set as part of the files that include it.
//
// Elements travel in pairs of F32 vectors, whose order only the loads and stores
// here know. Elements of 16 bits are split into even and odd ones, which takes
// shifts and masks but no permutation; F32 into first and second half. Memory is
// aligned to elements and no more.
//
// Not here: blocks and planes.

// Highway's guard: included once for each target.
#if defined(PLANEWISE_CORE_QUANT_VECTOR_SMALL_FLOAT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLANEWISE_CORE_QUANT_VECTOR_SMALL_FLOAT_INL_H_
#undef PLANEWISE_CORE_QUANT_VECTOR_SMALL_FLOAT_INL_H_
#else
#define PLANEWISE_CORE_QUANT_VECTOR_SMALL_FLOAT_INL_H_
#endif

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/numeric/bfloat16.h"
#include "core/numeric/float16.h"
#include "core/numeric/float8_e5m2.h"
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
using I32Tag = hn::RebindToSigned<U32Tag>;
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

// Elements in a pair, and a number that is a multiple of it on every machine.
HWY_INLINE int64_t PairLanes() { return static_cast<int64_t>(2 * hn::Lanes(F32Tag())); }
constexpr int64_t kPairLanesMax = 32;
static_assert(2 * hn::MaxLanes(F32Tag()) <= kPairLanesMax);

// Where lanes, below 2^31, are above `limit`. Machines compare signed integers.
HWY_INLINE hn::Mask<U32Tag> IsAbove(U32 lanes, uint32_t limit) {
  const I32Tag i32;
  return hn::RebindMask(U32Tag(),
                        hn::Gt(hn::BitCast(i32, lanes), hn::Set(i32, static_cast<int32_t>(limit))));
}

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

// As Element::FromFloat of numbers without a sign: nearest, ties to even,
// saturating; of NaN, the largest. In the low 8 bits; above them anything.
template <typename Element>
HWY_INLINE U32 CodesOf(F32 magnitude) {
  const U32Tag u32;
  // By the bits, among which NaN is above all numbers.
  const U32 saturated =
      hn::Min(hn::BitCast(u32, magnitude), hn::Set(u32, std::bit_cast<uint32_t>(Element::kMax)));
  return RoundToSmallFloats<Element::kMantissaBits, Element::kBias>(
      hn::BitCast(F32Tag(), saturated));
}

// As WidenSmallFloat: the value of lanes that hold exponent and mantissa bits.
template <int kMantissaBits, int kBias>
HWY_INLINE F32 WidenSmallFloats(U32 code) {
  const F32Tag f32;
  const U32Tag u32;
  const U32 normal = hn::Add(hn::ShiftLeft<23 - kMantissaBits>(code),
                             hn::Set(u32, static_cast<uint32_t>(127 - kBias) << 23));
  const F32 subnormal = hn::Mul(hn::ConvertTo(f32, hn::BitCast(I32Tag(), code)),
                                hn::Set(f32, PowerOfTwo(1 - kBias - kMantissaBits)));
  constexpr uint32_t kLastSubnormal = (1u << kMantissaBits) - 1;
  return hn::IfThenElse(hn::RebindMask(f32, IsAbove(code, kLastSubnormal)),
                        hn::BitCast(f32, normal), subnormal);
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

// Magnitudes of a pair of elements, NaN included.
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
  const auto widen = [](U32 code) {
    const U32Tag u32;
    const U32 wide =
        hn::BitCast(u32, WidenSmallFloats<Float16::kMantissaBits, Float16::kBias>(code));
    const U32 not_finite = hn::Set(u32, kInfinityBits<float>);
    return hn::BitCast(
        F32Tag(),
        hn::Or(wide, hn::IfThenElseZero(IsAbove(code, Float16::kInfinity - 1), not_finite)));
  };
  return {widen(codes.first), widen(codes.second)};
}

// Bytes, or words, that belong to a pair of elements of type HighPrecision, one a lane.
template <typename HighPrecision>
HWY_INLINE U32Pair LoadLanes(const uint8_t* bytes) {
  if constexpr (sizeof(HighPrecision) == 2) {
    const hn::Rebind<uint8_t, U16Tag> u8;
    return Split(hn::PromoteTo(U16Tag(), hn::LoadU(u8, bytes)));
  } else {
    const hn::Rebind<uint8_t, U32Tag> u8;
    return {hn::PromoteTo(U32Tag(), hn::LoadU(u8, bytes)),
            hn::PromoteTo(U32Tag(), hn::LoadU(u8, bytes + hn::Lanes(u8)))};
  }
}

template <typename HighPrecision>
HWY_INLINE U32Pair LoadLanes(const uint32_t* words) {
  const U32Tag u32;
  U32Pair lanes;
  if constexpr (sizeof(HighPrecision) == 2) {
    hn::LoadInterleaved2(u32, words, lanes.first, lanes.second);
  } else {
    lanes = {hn::LoadU(u32, words), hn::LoadU(u32, words + hn::Lanes(u32))};
  }
  return lanes;
}

// A pair as it lies in registers, to and from scratch memory.
HWY_INLINE void StorePair(F32Pair pair, float* scratch) {
  const F32Tag f32;
  hn::StoreU(pair.first, f32, scratch);
  hn::StoreU(pair.second, f32, scratch + hn::Lanes(f32));
}
HWY_INLINE F32Pair LoadPair(const float* scratch) {
  const F32Tag f32;
  return {hn::LoadU(f32, scratch), hn::LoadU(f32, scratch + hn::Lanes(f32))};
}

// Numbers that belong to a pair of elements of type HighPrecision, in the order of
// these.
template <typename HighPrecision>
HWY_INLINE F32Pair LoadInOrder(const float* values) {
  if constexpr (sizeof(HighPrecision) == 4) {
    return LoadPair(values);
  } else {
    F32Pair pair;
    hn::LoadInterleaved2(F32Tag(), values, pair.first, pair.second);
    return pair;
  }
}
template <typename HighPrecision>
HWY_INLINE void StoreInOrder(F32Pair pair, float* values) {
  if constexpr (sizeof(HighPrecision) == 4) {
    StorePair(pair, values);
  } else {
    hn::StoreInterleaved2(pair.first, pair.second, F32Tag(), values);
  }
}

// Numbers that belong to the elements of a row, by column: one for all.
struct OfRow {
  float number;

  HWY_INLINE F32Pair At(int64_t /*column*/) const {
    const F32 all = hn::Set(F32Tag(), number);
    return {all, all};
  }
};

// One for each column, as pairs of elements have them.
struct OfColumns {
  const float* numbers;

  HWY_INLINE F32Pair At(int64_t column) const { return LoadPair(numbers + column); }
};

// One for each kRun columns.
template <int64_t kRun, typename HighPrecision>
struct OfRuns {
  const float* numbers;

  HWY_INLINE F32Pair At(int64_t column) const {
    const F32Tag f32;
    const float* run = numbers + column / kRun;
    if constexpr (2 * hn::MaxLanes(F32Tag()) <= kRun) {
      return OfRow{*run}.At(column);
    } else if constexpr (sizeof(HighPrecision) == 4) {
      return {hn::Set(f32, run[0]), hn::Set(f32, run[1])};
    } else {
      // The even and the odd elements of two runs.
      const hn::Half<F32Tag> half;
      const F32 both = hn::Combine(f32, hn::Set(half, run[1]), hn::Set(half, run[0]));
      return {both, both};
    }
  }
};

// Lanes that belong to a pair of elements, or the low bytes of them, in the order of
// these.
template <typename HighPrecision>
HWY_INLINE void StoreLanes(U32Pair lanes, uint32_t* words) {
  if constexpr (sizeof(HighPrecision) == 2) {
    hn::StoreInterleaved2(lanes.first, lanes.second, U32Tag(), words);
  } else {
    hn::StoreU(lanes.first, U32Tag(), words);
    hn::StoreU(lanes.second, U32Tag(), words + hn::Lanes(U32Tag()));
  }
}
template <typename HighPrecision>
HWY_INLINE void StoreLanes(U32Pair lanes, uint8_t* bytes) {
  if constexpr (sizeof(HighPrecision) == 2) {
    const hn::Rebind<uint8_t, U16Tag> u8;
    hn::StoreU(hn::TruncateTo(u8, Join(lanes)), u8, bytes);
  } else {
    const hn::Rebind<uint8_t, U32Tag> u8;
    hn::StoreU(hn::TruncateTo(u8, lanes.first), u8, bytes);
    hn::StoreU(hn::TruncateTo(u8, lanes.second), u8, bytes + hn::Lanes(u8));
  }
}

// The codes of elements whose bits are `source` and whose magnitudes have the codes
// given: with the signs, and NaN. D's lanes are as wide as the elements.
template <typename Element, typename HighPrecision, class D, class V>
HWY_INLINE V WithSignsAndNan(D d, V codes, V source) {
  constexpr int kSignShift = 8 * sizeof(HighPrecision) - std::bit_width(Element::kSignBit);
  constexpr uint8_t kNanCode = Element::FromFloat(kCanonicalNan).bits;
  const hn::RebindToSigned<D> s;
  const V magnitudes = hn::And(source, hn::Set(d, kMagnitudeMask<HighPrecision>));
  const auto is_nan =
      hn::Gt(hn::BitCast(s, magnitudes), hn::BitCast(s, hn::Set(d, kInfinityBits<HighPrecision>)));
  const V with_signs = hn::OrAnd(codes, hn::ShiftRight<kSignShift>(source),
                                 hn::Set(d, static_cast<hn::TFromD<D>>(Element::kSignBit)));
  return hn::IfThenElse(hn::RebindMask(d, is_nan), hn::Set(d, kNanCode), with_signs);
}

// Stores the codes of a pair of elements, one a byte, from those of their magnitudes.
template <typename Element, typename HighPrecision>
HWY_INLINE void StoreCodes(U32Pair codes, const HighPrecision* elements, uint8_t* bytes) {
  if constexpr (sizeof(HighPrecision) == 2) {
    const U16Tag u16;
    const hn::Rebind<uint8_t, U16Tag> u8;
    const U16 signed_codes =
        WithSignsAndNan<Element, HighPrecision>(u16, Join(codes), hn::LoadU(u16, Bits(elements)));
    hn::StoreU(hn::TruncateTo(u8, signed_codes), u8, bytes);
  } else {
    const auto signed_codes = [](U32 lanes, const HighPrecision* values) {
      const U32Tag u32;
      return WithSignsAndNan<Element, HighPrecision>(u32, lanes, hn::LoadU(u32, Bits(values)));
    };
    StoreLanes<HighPrecision>({signed_codes(codes.first, elements),
                               signed_codes(codes.second, elements + hn::Lanes(U32Tag()))},
                              bytes);
  }
}

// Narrows as Narrow() does, one NaN for all, and stores.
HWY_INLINE void StoreNarrow(F32Pair lanes, float* values) {
  const auto narrow = [](F32 lane) {
    return hn::IfThenElse(hn::IsNaN(lane), hn::Set(F32Tag(), kCanonicalNan), lane);
  };
  StorePair({narrow(lanes.first), narrow(lanes.second)}, values);
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

// As Element::ToFloat.
template <typename Element>
HWY_INLINE F32 WidenCodes(U32 codes) {
  const F32Tag f32;
  const U32Tag u32;
  constexpr uint32_t kMagnitude = Element::kSignBit - 1;
  constexpr uint32_t kInfinity = std::is_same_v<Element, Float8E5M2> ? Element::kMaxCode + 1 : 0;
  constexpr uint32_t kLastNumber = std::max(Element::kMaxCode, kInfinity);
  const U32 magnitude = hn::And(codes, hn::Set(u32, kMagnitude));
  U32 wide = hn::BitCast(u32, WidenSmallFloats<Element::kMantissaBits, Element::kBias>(magnitude));
  if constexpr (kInfinity > 0) {
    wide = hn::IfThenElse(hn::Eq(magnitude, hn::Set(u32, kInfinity)),
                          hn::Set(u32, kInfinityBits<float>), wide);
  }
  constexpr int kSignShift = 32 - std::bit_width(Element::kSignBit);
  wide = hn::OrAnd(wide, hn::ShiftLeft<kSignShift>(codes), hn::Set(u32, 0x80000000u));
  if constexpr (kLastNumber < kMagnitude) {
    wide = hn::IfThenElse(IsAbove(magnitude, kLastNumber),
                          hn::Set(u32, std::bit_cast<uint32_t>(kCanonicalNan)), wide);
  }
  return hn::BitCast(f32, wide);
}

#endif  // HWY_TARGET != HWY_SCALAR
}  // namespace HWY_NAMESPACE
}  // namespace planewise
HWY_AFTER_NAMESPACE();

#endif  // PLANEWISE_CORE_QUANT_VECTOR_SMALL_FLOAT_INL_H_
