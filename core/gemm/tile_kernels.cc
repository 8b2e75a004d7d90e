#include "core/gemm/tile_kernels.h"

#include <cstddef>
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

// Tiles are written in order, and have mostly left the cache since they were
// written last: asks for the line that the step after next will write.
HWY_INLINE void PrefetchForWriting(const uint16_t* tile) {
  constexpr int64_t kTwoSteps = 64 * 64;
  __builtin_prefetch(tile + kTwoSteps, 1);
}

// A code's magnitude bits, moved to where BF16 has its mantissa, are its BF16
// bits less a multiple of the exponent's lowest bit, except that
//  - subnormal codes are normal BF16 numbers, whose bits, relative to the
//    exponent that 0 in a code's exponent field would stand for, are multiples
//    of the moved lowest bit too: a table says how many;
//  - codes of infinity and NaN keep that meaning whatever the scale.
// kAdded[m] is added to the magnitude m before it is moved; for normal codes it
// is the smallest one's. It is kOffset too large, so as not to be negative; what
// is added for the exponent takes that back.
constexpr int kOffset = 32;

struct E4M3 {
  static constexpr int kMantissaBits = 3;
  static constexpr int kBias = 7;
  static constexpr bool kHasInfinity = false;
  static constexpr uint16_t kLargestFinite = 0x7E;

  // m * 2^-9 against 2^-7, in moved lowest bits, 8 to an exponent:
  // -16, -8, -4, 0, 2, 4, 6. Less m, since m is there already.
  alignas(16) static constexpr uint8_t kAdded[16] = {
      0,           kOffset - 17, kOffset - 10, kOffset - 7, kOffset - 4,
      kOffset - 3, kOffset - 2,  kOffset - 1,  kOffset};
};

struct E5M2 {
  static constexpr int kMantissaBits = 2;
  static constexpr int kBias = 15;
  static constexpr bool kHasInfinity = true;
  static constexpr uint16_t kLargestFinite = 0x7B;

  // m * 2^-16 against 2^-15, 4 to an exponent: -4, 0, 2. Less m.
  alignas(16) static constexpr uint8_t kAdded[16] = {0, kOffset - 5, kOffset - 2, kOffset - 1,
                                                     kOffset};
};

// What is added to a code's moved bits when its block has scale b and is
// shifted: the exponent, in BF16's place. Wraps where expansion.h forbids it.
template <class Format>
uint16_t ExponentBits(int scale, int shift) {
  constexpr int kMovedOffset = kOffset << (kBf16MantissaBits - Format::kMantissaBits);
  return static_cast<uint16_t>(((scale + shift - Format::kBias) << kBf16MantissaBits) -
                               kMovedOffset);
}

template <class Format>
HWY_INLINE V16 WithAdded(D16 d, V16 magnitude) {
  constexpr uint16_t kSmallestNormal = 1 << Format::kMantissaBits;
#if HWY_TARGET == HWY_SCALAR
  const uint16_t m = hn::GetLane(magnitude);
  return hn::Set(d, m + Format::kAdded[m < kSmallestNormal ? m : kSmallestNormal]);
#else
  // Both bytes of a lane look up: the upper one, always 0, finds 0.
  const hn::Repartition<uint8_t, D16> d8;
  const auto index = hn::BitCast(d8, hn::Min(magnitude, hn::Set(d, kSmallestNormal)));
  const auto added = hn::TableLookupBytes(hn::LoadDup128(d8, Format::kAdded), index);
  return hn::Add(magnitude, hn::BitCast(d, added));
#endif
}

template <class Format>
HWY_INLINE V16 Expand(D16 d, V16 code, V16 exponent_bits) {
  const V16 magnitude = hn::And(code, hn::Set(d, 0x7F));
  V16 bits = hn::ShiftLeft<kBf16MantissaBits - Format::kMantissaBits>(
      WithAdded<Format>(d, magnitude));
  bits = hn::IfThenZeroElse(hn::Eq(magnitude, hn::Zero(d)), hn::Add(bits, exponent_bits));
  V16 special = hn::Set(d, kBf16Nan);
  if constexpr (Format::kHasInfinity) {
    special = hn::IfThenElse(hn::Eq(magnitude, hn::Set(d, Format::kLargestFinite + 1)),
                             hn::Set(d, 0x7F80), special);
  }
  bits = hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, Format::kLargestFinite)), special, bits);
  return hn::OrAnd(bits, hn::ShiftLeft<8>(code), hn::Set(d, 0x8000));
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

// One block of the codes of 64 rows, [16, 64, 2]: in the order that tiles have.
// `exponent_bits` are those of the rows, each twice.
template <class Format>
void ExpandCodePairs(const uint8_t* codes, const uint16_t* exponent_bits, uint16_t* out) {
  const D16 d;
  for (int64_t i = 0; i < 128; i += static_cast<int64_t>(hn::Lanes(d))) {
    const V16 exponents = hn::LoadU(d, exponent_bits + i);
    for (int64_t pair = 0; pair < 16; ++pair) {
      const V16 code = LoadCodes(d, codes + pair * 128 + i);
      uint16_t* to = out + pair * 128 + i;
      PrefetchForWriting(to);
      hn::StoreU(Expand<Format>(d, code, exponents), d, to);
    }
  }
}

#if HWY_TARGET == HWY_SCALAR  // vectors of one lane

// in: 64 rows of 2 * `pairs` codes -> out [pairs, 64, 2].
void TransposeCodePairs(const uint8_t* in, int64_t in_stride, int64_t pairs, uint8_t* out) {
  for (int64_t row = 0; row < 64; ++row) {
    for (int64_t pair = 0; pair < pairs; ++pair) {
      std::memcpy(out + pair * 128 + 2 * row, in + row * in_stride + 2 * pair, 2);
    }
  }
}

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

// Stores each block of 16 bytes of a vector, `stride` bytes apart.
template <class D, class V>
HWY_INLINE void StoreBlocks(D d, V v, uint8_t* to, int64_t stride) {
  if constexpr (hn::MaxLanes(D()) == 16) {
    hn::StoreU(v, d, to);
  } else {
    const hn::Half<D> half;
    constexpr int64_t kLowerBlocks = hn::MaxLanes(D()) / 32;
    StoreBlocks(half, hn::LowerHalf(half, v), to, stride);
    StoreBlocks(half, hn::UpperHalf(half, v), to + kLowerBlocks * stride, stride);
  }
}

// in: 64 rows of 2 * `pairs` codes -> out [pairs, 64, 2]. Vectors of at most
// `pairs` pairs: each block of 8 in them is transposed by itself.
template <class D>
HWY_INLINE void TransposeCodePairs(D d, const uint8_t* in, int64_t in_stride, int64_t pairs,
                                   uint8_t* out) {
  const hn::Repartition<uint8_t, D> d8;
  hn::Vec<D> v[8];
  for (int64_t row = 0; row < 64; row += 8) {
    for (int64_t pair = 0; pair < pairs; pair += static_cast<int64_t>(hn::Lanes(d))) {
      for (int64_t i = 0; i < 8; ++i) {
        v[i] = hn::BitCast(d, hn::LoadU(d8, in + (row + i) * in_stride + 2 * pair));
      }
      for (int round = 0; round < 3; ++round) Shuffle(d, v);
      for (int64_t i = 0; i < 8; ++i) {
        StoreBlocks(d8, hn::BitCast(d8, v[i]), out + (pair + i) * 128 + 2 * row, 8 * 128);
      }
    }
  }
}

// As above. A vector that is a whole line, where there is one, reads each line
// once: rows a power of two apart would drive one another out of the cache
// between two readings.
void TransposeCodePairs(const uint8_t* in, int64_t in_stride, int64_t pairs, uint8_t* out) {
  // The two differ where vectors of 64 bytes are.
  if (pairs % 32 == 0) {  // NOLINT(bugprone-branch-clone)
    TransposeCodePairs(hn::CappedTag<uint16_t, 32>(), in, in_stride, pairs, out);
  } else {
    TransposeCodePairs(hn::CappedTag<uint16_t, 16>(), in, in_stride, pairs, out);
  }
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

template <class Format>
void ExpandRowTileOf(const RowBlocks& blocks, uint16_t* out) {
  HWY_ALIGN uint8_t codes[64 * 64];
  TransposeCodePairs(blocks.codes, blocks.code_stride, blocks.columns / 2, codes);
  for (int64_t block = 0; block < blocks.columns / 32; ++block) {
    HWY_ALIGN uint16_t exponent_bits[128];
    bool any_nan = false;
    for (int64_t row = 0; row < 64; ++row) {
      const int scale = blocks.scales[row * blocks.scale_stride + block];
      exponent_bits[2 * row] = ExponentBits<Format>(scale, blocks.shifts[row]);
      exponent_bits[2 * row + 1] = exponent_bits[2 * row];
      any_nan |= scale == 255;
    }
    uint16_t* to = out + block * 16 * 128;
    ExpandCodePairs<Format>(codes + block * 16 * 128, exponent_bits, to);
    if (!any_nan) continue;
    for (int64_t row = 0; row < 64; ++row) {
      if (blocks.scales[row * blocks.scale_stride + block] != 255) continue;
      for (int64_t pair = 0; pair < 16; ++pair) {
        to[pair * 128 + 2 * row] = kBf16Nan;
        to[pair * 128 + 2 * row + 1] = kBf16Nan;
      }
    }
  }
}

void ExpandRowTile(const RowBlocks& blocks, uint16_t* out) {
  if (blocks.element == DType::kF8E4M3) return ExpandRowTileOf<E4M3>(blocks, out);
  ExpandRowTileOf<E5M2>(blocks, out);
}

void InterleavePairs(const uint16_t* in, int64_t in_stride, uint16_t* out) {
  const D16 d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t pair = 0; pair < 16; ++pair) {
    const uint16_t* even = in + 2 * pair * in_stride;
    const uint16_t* odd = even + in_stride;
    for (int64_t column = 0; column < 64; column += lanes) {
      uint16_t* to = out + pair * 128 + 2 * column;
      PrefetchForWriting(to);
      PrefetchForWriting(to + lanes);
      hn::StoreInterleaved2(hn::LoadU(d, even + column), hn::LoadU(d, odd + column), d, to);
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

// Whole lines of F32, aligned.
void StreamRow(const float* sums, const float* bias, int64_t count, float* out) {
  const hn::ScalableTag<float> d;
  for (int64_t i = 0; i < count; i += static_cast<int64_t>(hn::Lanes(d))) {
    auto value = hn::LoadU(d, sums + i);
    if (bias != nullptr) value = hn::Add(value, hn::LoadU(d, bias + i));
    hn::Stream(value, d, out + i);
  }
}

void StoreRows(const RowSums& sums, DType dtype, void* out, int64_t out_stride_bytes,
               bool past_caches) {
  constexpr int64_t kLineBytes = 64;
  std::byte* to = static_cast<std::byte*>(out);
  const bool whole_lines = sums.columns * 4 % kLineBytes == 0 &&
                           out_stride_bytes % kLineBytes == 0 &&
                           reinterpret_cast<uintptr_t>(out) % kLineBytes == 0;
  for (int64_t row = 0; row < sums.rows; ++row, to += out_stride_bytes) {
    const float* from = sums.sums + row * sums.sum_stride;
    if (past_caches && whole_lines && dtype == DType::kF32) {
      StreamRow(from, sums.bias, sums.columns, reinterpret_cast<float*>(to));
    } else {
      StoreRow(from, sums.bias, sums.columns, dtype, to);
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
HWY_EXPORT(ExpandRowTile);
HWY_EXPORT(ExpandColumnBlocks);
HWY_EXPORT(TransposeBlock);
HWY_EXPORT(TransposePairs);
HWY_EXPORT(InterleavePairs);
HWY_EXPORT(StoreRows);
HWY_EXPORT(WidenRow);

void ExpandRowBlocks(const RowBlocks& blocks, uint16_t* out, int64_t out_stride) {
  HWY_DYNAMIC_DISPATCH(ExpandRowBlocks)(blocks, out, out_stride);
}

void ExpandRowTile(const RowBlocks& blocks, uint16_t* out) {
  HWY_DYNAMIC_DISPATCH(ExpandRowTile)(blocks, out);
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

void StoreRows(const RowSums& sums, DType dtype, void* out, int64_t out_stride_bytes,
               bool past_caches) {
  HWY_DYNAMIC_DISPATCH(StoreRows)(sums, dtype, out, out_stride_bytes, past_caches);
}

void WidenRow(const uint16_t* in, int64_t count, float* out) {
  HWY_DYNAMIC_DISPATCH(WidenRow)(in, count, out);
}

}  // namespace planewise
#endif  // HWY_ONCE
