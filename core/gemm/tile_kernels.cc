#include "core/gemm/tile_kernels.h"

#include <cstring>

#include "core/numeric/bfloat16.h"
#include "core/numeric/float16.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/gemm/tile_kernels.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace planewise {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr uint16_t kBf16Nan = 0x7FFF;
constexpr int kBf16MantissaBits = 7;

// At most one block of 32 codes a vector.
using D16 = hn::CappedTag<uint16_t, 32>;
using V16 = hn::Vec<D16>;

// A code's magnitude bits, moved to where BF16 has its mantissa, are its BF16
// bits less a multiple of the exponent's lowest bit, except that
//  - subnormal codes are normal BF16 numbers, given here relative to the
//    exponent that 0 in a code's exponent field would stand for;
//  - codes of infinity and NaN keep that meaning whatever the scale.
struct E4M3 {
  static constexpr int kMantissaBits = 3;
  static constexpr int kBias = 7;
  static constexpr uint16_t kInfinity = 0xFFFF;  // has none
  static constexpr uint16_t kLargestFinite = 0x7E;

  // m * 2^-9 against 2^-7, for m = 1 to 7: the leading one, bit 2, 1 or 0 of m,
  // gives the exponent 0, -1 or -2, and goes.
  static HWY_INLINE V16 Subnormal(D16 d, V16 m) {
    const V16 from_4 = hn::Sub(hn::ShiftLeft<5>(m), hn::Set(d, 128));
    const V16 from_2 = hn::Sub(hn::ShiftLeft<6>(m), hn::Set(d, 256));
    const V16 of_1 = hn::Sub(hn::Zero(d), hn::Set(d, 256));
    return hn::IfThenElse(hn::Gt(m, hn::Set(d, 3)), from_4,
                          hn::IfThenElse(hn::Gt(m, hn::Set(d, 1)), from_2, of_1));
  }
};

struct E5M2 {
  static constexpr int kMantissaBits = 2;
  static constexpr int kBias = 15;
  static constexpr uint16_t kInfinity = 0x7C;
  static constexpr uint16_t kLargestFinite = 0x7B;

  // m * 2^-16 against 2^-15, for m = 1 to 3.
  static HWY_INLINE V16 Subnormal(D16 d, V16 m) {
    const V16 from_2 = hn::Sub(hn::ShiftLeft<6>(m), hn::Set(d, 128));
    const V16 of_1 = hn::Sub(hn::Zero(d), hn::Set(d, 128));
    return hn::IfThenElse(hn::Gt(m, hn::Set(d, 1)), from_2, of_1);
  }
};

// What is added to a code's moved bits when its block has scale b and is
// shifted: the exponent, in BF16's place. Wraps where expansion.h forbids it.
template <class Format>
uint16_t ExponentBits(int scale, int shift) {
  return static_cast<uint16_t>((scale + shift - Format::kBias) << kBf16MantissaBits);
}

template <class Format>
HWY_INLINE V16 Expand(D16 d, V16 code, V16 exponent_bits) {
  const V16 magnitude = hn::And(code, hn::Set(d, 0x7F));
  const V16 sign = hn::ShiftLeft<8>(hn::And(code, hn::Set(d, 0x80)));

  constexpr uint16_t kSmallestNormal = 1 << Format::kMantissaBits;
  V16 bits = hn::ShiftLeft<kBf16MantissaBits - Format::kMantissaBits>(magnitude);
  bits = hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, kSmallestNormal)),
                        Format::Subnormal(d, magnitude), bits);
  bits = hn::Add(bits, exponent_bits);
  bits = hn::IfThenZeroElse(hn::Eq(magnitude, hn::Zero(d)), bits);
  const V16 special = hn::IfThenElse(hn::Eq(magnitude, hn::Set(d, Format::kInfinity)),
                                     hn::Set(d, 0x7F80), hn::Set(d, kBf16Nan));
  bits = hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, Format::kLargestFinite)), special, bits);
  return hn::Or(bits, sign);
}

HWY_INLINE V16 LoadCodes(D16 d, const uint8_t* codes) {
  return hn::PromoteTo(d, hn::LoadU(hn::Rebind<uint8_t, D16>(), codes));
}

template <class Format>
void ExpandRowBlocksOf(const RowBlocks& blocks, uint16_t* out, int64_t out_stride) {
  const D16 d;
  const size_t lanes = hn::Lanes(d);
  for (int64_t row = 0; row < blocks.rows; ++row) {
    const uint8_t* codes = blocks.codes + row * blocks.code_stride;
    const uint8_t* scales = blocks.scales + row * blocks.scale_stride;
    uint16_t* to = out + row * out_stride;
    for (int64_t column = 0; column < blocks.columns; column += 32) {
      const int scale = scales[column / 32];
      if (scale == 255) {
        for (int i = 0; i < 32; ++i) to[column + i] = kBf16Nan;
        continue;
      }
      const V16 exponent_bits = hn::Set(d, ExponentBits<Format>(scale, blocks.shifts[row]));
      for (size_t i = 0; i < 32; i += lanes) {
        const V16 code = LoadCodes(d, codes + column + i);
        hn::StoreU(Expand<Format>(d, code, exponent_bits), d, to + column + i);
      }
    }
  }
}

template <class Format>
void ExpandColumnBlocksOf(const ColumnBlocks& blocks, uint16_t* out, int64_t out_stride) {
  const D16 d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  uint16_t exponent_bits[ColumnBlocks::kMaxColumns];
  bool any_nan = false;
  for (int64_t column = 0; column < blocks.columns; ++column) {
    const int scale = blocks.scales[column];
    exponent_bits[column] = ExponentBits<Format>(scale, blocks.shifts[column]);
    any_nan |= scale == 255;
  }
  for (int64_t row = 0; row < blocks.rows; ++row) {
    const uint8_t* codes = blocks.codes + row * blocks.code_stride;
    uint16_t* to = out + row * out_stride;
    for (int64_t column = 0; column < blocks.columns; column += lanes) {
      const V16 code = LoadCodes(d, codes + column);
      const V16 exponents = hn::LoadU(d, exponent_bits + column);
      hn::StoreU(Expand<Format>(d, code, exponents), d, to + column);
    }
    if (!any_nan) continue;
    for (int64_t column = 0; column < blocks.columns; ++column) {
      if (blocks.scales[column] == 255) to[column] = kBf16Nan;
    }
  }
}

void ExpandRowBlocks(const RowBlocks& blocks, uint16_t* out, int64_t out_stride) {
  if (blocks.element == DType::kF8E4M3) return ExpandRowBlocksOf<E4M3>(blocks, out, out_stride);
  ExpandRowBlocksOf<E5M2>(blocks, out, out_stride);
}

void ExpandColumnBlocks(const ColumnBlocks& blocks, uint16_t* out, int64_t out_stride) {
  if (blocks.element == DType::kF8E4M3) return ExpandColumnBlocksOf<E4M3>(blocks, out, out_stride);
  ExpandColumnBlocksOf<E5M2>(blocks, out, out_stride);
}

#if HWY_TARGET == HWY_SCALAR  // vectors of one lane

void TransposeBlock(const uint16_t* in, int64_t in_stride, uint16_t* out, int64_t out_stride) {
  for (int64_t row = 0; row < 32; ++row) {
    for (int64_t column = 0; column < 64; ++column) {
      out[column * out_stride + row] = in[row * in_stride + column];
    }
  }
}

void TransposePairs(const uint16_t* in, int64_t in_stride, uint16_t* out) {
  for (int64_t row = 0; row < 64; ++row) {
    for (int64_t column = 0; column < 32; ++column) {
      out[column / 2 * 128 + 2 * row + column % 2] = in[row * in_stride + column];
    }
  }
}

#else

// One round of the transposition of N vectors of N lanes by interleaving
// vector i with vector i + N/2; log2(N) rounds transpose.
template <int N, class D, class V>
HWY_INLINE void Shuffle(D d, V (&v)[N]) {
  V next[N];
  for (int i = 0; i < N / 2; ++i) {
    next[2 * i] = hn::InterleaveLower(d, v[i], v[i + N / 2]);
    next[2 * i + 1] = hn::InterleaveUpper(d, v[i], v[i + N / 2]);
  }
  for (int i = 0; i < N; ++i) v[i] = next[i];
}

void TransposeBlock(const uint16_t* in, int64_t in_stride, uint16_t* out, int64_t out_stride) {
  const hn::FixedTag<uint16_t, 8> d;
  hn::Vec<decltype(d)> v[8];
  for (int64_t row = 0; row < 32; row += 8) {
    for (int64_t column = 0; column < 64; column += 8) {
      for (int64_t i = 0; i < 8; ++i) v[i] = hn::LoadU(d, in + (row + i) * in_stride + column);
      for (int round = 0; round < 3; ++round) Shuffle(d, v);
      for (int64_t i = 0; i < 8; ++i) hn::StoreU(v[i], d, out + (column + i) * out_stride + row);
    }
  }
}

void TransposePairs(const uint16_t* in, int64_t in_stride, uint16_t* out) {
  const hn::FixedTag<uint16_t, 8> d16;
  const hn::FixedTag<uint32_t, 4> d;
  hn::Vec<decltype(d)> v[4];
  for (int64_t row = 0; row < 64; row += 4) {
    for (int64_t pair = 0; pair < 16; pair += 4) {
      for (int64_t i = 0; i < 4; ++i) {
        v[i] = hn::BitCast(d, hn::LoadU(d16, in + (row + i) * in_stride + 2 * pair));
      }
      for (int round = 0; round < 2; ++round) Shuffle(d, v);
      for (int64_t i = 0; i < 4; ++i) {
        hn::StoreU(hn::BitCast(d16, v[i]), d16, out + (pair + i) * 128 + 2 * row);
      }
    }
  }
}

#endif

void InterleavePairs(const uint16_t* in, int64_t in_stride, uint16_t* out) {
  const D16 d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t pair = 0; pair < 16; ++pair) {
    const uint16_t* even = in + 2 * pair * in_stride;
    const uint16_t* odd = even + in_stride;
    for (int64_t column = 0; column < 64; column += lanes) {
      hn::StoreInterleaved2(hn::LoadU(d, even + column), hn::LoadU(d, odd + column), d,
                            out + pair * 128 + 2 * column);
    }
  }
}

// BFloat16::FromFloat, lane by lane.
template <class D32, class V32>
HWY_INLINE V32 RoundToBf16(D32 d, V32 bits) {
  const V32 last_kept_bit = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1));
  const V32 rounded = hn::Add(hn::Add(bits, hn::Set(d, 0x7FFF)), last_kept_bit);
  const auto is_nan =
      hn::Gt(hn::And(bits, hn::Set(d, 0x7FFFFFFF)), hn::Set(d, 0x7F800000));
  return hn::IfThenElse(is_nan, hn::Set(d, 0x7FFF), hn::ShiftRight<16>(rounded));
}

void StoreRow(const float* sums, const float* bias, int64_t count, DType dtype, void* out) {
  const hn::ScalableTag<float> df;
  const hn::RebindToUnsigned<decltype(df)> d32;
  const hn::Rebind<uint16_t, decltype(df)> d16;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(df));
  int64_t i = 0;
  if (dtype != DType::kF16) {
    for (; i + lanes <= count; i += lanes) {
      auto value = hn::LoadU(df, sums + i);
      if (bias != nullptr) value = hn::Add(value, hn::LoadU(df, bias + i));
      if (dtype == DType::kF32) {
        hn::StoreU(value, df, static_cast<float*>(out) + i);
      } else {
        const auto rounded = RoundToBf16(d32, hn::BitCast(d32, value));
        hn::StoreU(hn::TruncateTo(d16, rounded), d16, static_cast<uint16_t*>(out) + i);
      }
    }
  }
  for (; i < count; ++i) {
    const float value = bias != nullptr ? sums[i] + bias[i] : sums[i];
    if (dtype == DType::kF32) {
      static_cast<float*>(out)[i] = value;
    } else if (dtype == DType::kF16) {
      static_cast<Float16*>(out)[i] = Float16::FromFloat(value);
    } else {
      static_cast<BFloat16*>(out)[i] = BFloat16::FromFloat(value);
    }
  }
}

void WidenRow(const uint16_t* in, int64_t count, float* out) {
  const hn::ScalableTag<uint32_t> d32;
  const hn::Rebind<uint16_t, decltype(d32)> d16;
  const hn::Rebind<float, decltype(d32)> df;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d32));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto wide = hn::ShiftLeft<16>(hn::PromoteTo(d32, hn::LoadU(d16, in + i)));
    hn::StoreU(hn::BitCast(df, wide), df, out + i);
  }
  for (; i < count; ++i) out[i] = BFloat16{in[i]}.ToFloat();
}

}  // namespace HWY_NAMESPACE
}  // namespace planewise
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace planewise {

HWY_EXPORT(ExpandRowBlocks);
HWY_EXPORT(ExpandColumnBlocks);
HWY_EXPORT(TransposeBlock);
HWY_EXPORT(TransposePairs);
HWY_EXPORT(InterleavePairs);
HWY_EXPORT(StoreRow);
HWY_EXPORT(WidenRow);

void ExpandRowBlocks(const RowBlocks& blocks, uint16_t* out, int64_t out_stride) {
  HWY_DYNAMIC_DISPATCH(ExpandRowBlocks)(blocks, out, out_stride);
}

void ExpandColumnBlocks(const ColumnBlocks& blocks, uint16_t* out, int64_t out_stride) {
  HWY_DYNAMIC_DISPATCH(ExpandColumnBlocks)(blocks, out, out_stride);
}

void TransposeBlock(const uint16_t* in, int64_t in_stride, uint16_t* out, int64_t out_stride) {
  HWY_DYNAMIC_DISPATCH(TransposeBlock)(in, in_stride, out, out_stride);
}

void TransposePairs(const uint16_t* in, int64_t in_stride, uint16_t* out) {
  HWY_DYNAMIC_DISPATCH(TransposePairs)(in, in_stride, out);
}

void InterleavePairs(const uint16_t* in, int64_t in_stride, uint16_t* out) {
  HWY_DYNAMIC_DISPATCH(InterleavePairs)(in, in_stride, out);
}

void StoreRow(const float* sums, const float* bias, int64_t count, DType dtype, void* out) {
  HWY_DYNAMIC_DISPATCH(StoreRow)(sums, bias, count, dtype, out);
}

void WidenRow(const uint16_t* in, int64_t count, float* out) {
  HWY_DYNAMIC_DISPATCH(WidenRow)(in, count, out);
}

}  // namespace planewise
#endif  // HWY_ONCE
