// Codes as bytes: packed by two, unpacked, and transposed. Compiled for each instruction
// set as part of the files that include it.
//
// Not here: what codes mean (vector_small_float-inl.h).

// Highway's guard: included once for each target.
#if defined(PLANEWISE_CORE_QUANT_VECTOR_CODES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLANEWISE_CORE_QUANT_VECTOR_CODES_INL_H_
#undef PLANEWISE_CORE_QUANT_VECTOR_CODES_INL_H_
#else
#define PLANEWISE_CORE_QUANT_VECTOR_CODES_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "core/quant/vector_tile-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace planewise {
namespace HWY_NAMESPACE {
#if HWY_TARGET != HWY_SCALAR

template <typename Element>
constexpr int64_t kCodesPerByte = Element::kSignBit == 0x8 ? 2 : 1;

// Rows of codes that are made, or read, together.
constexpr int64_t kGroupRows = 32;

// The codes of rows [first, first + rows) of a tile, one a byte, padding included.
struct CodeGroup {
  int64_t first = 0;
  int64_t rows = 0;
  int64_t columns = 0;
  alignas(kCacheLineBytes) uint8_t codes[kGroupRows * kTileColumns];

  uint8_t* Row(int64_t i) { return codes + i * kTileColumns; }
  const uint8_t* Row(int64_t i) const { return codes + i * kTileColumns; }
};

// Two neighbours in a row in one byte; `columns` is a multiple of 32.
HWY_INLINE void PackRow(const uint8_t* codes, int64_t columns, uint8_t* packed) {
  const hn::CappedTag<uint8_t, 32> bytes;
  const hn::Repartition<uint16_t, decltype(bytes)> pairs;
  const hn::Rebind<uint8_t, decltype(pairs)> halves;
  for (int64_t i = 0; i < columns; i += static_cast<int64_t>(hn::Lanes(bytes))) {
    const auto pair = hn::BitCast(pairs, hn::LoadU(bytes, codes + i));
    const auto both = hn::Or(pair, hn::ShiftRight<4>(pair));
    hn::StoreU(hn::TruncateTo(halves, both), halves, packed + i / 2);
  }
}

// Two neighbours in a column in one byte.
HWY_INLINE void PackTwoRows(const uint8_t* even, const uint8_t* odd, int64_t columns,
                            uint8_t* packed) {
  const hn::CappedTag<uint8_t, 32> d;
  for (int64_t i = 0; i < columns; i += static_cast<int64_t>(hn::Lanes(d))) {
    const auto high = hn::ShiftLeft<4>(hn::LoadU(d, odd + i));
    hn::StoreU(hn::Or(hn::LoadU(d, even + i), high), d, packed + i);
  }
}

// The way back: one code a byte, in its low half, whatever is above.
HWY_INLINE void UnpackRow(const uint8_t* packed, int64_t columns, uint8_t* codes) {
  const hn::CappedTag<uint8_t, 32> bytes;
  const hn::Repartition<uint16_t, decltype(bytes)> pairs;
  const hn::Rebind<uint8_t, decltype(pairs)> halves;
  for (int64_t i = 0; i < columns; i += static_cast<int64_t>(hn::Lanes(bytes))) {
    const auto both = hn::PromoteTo(pairs, hn::LoadU(halves, packed + i / 2));
    hn::StoreU(hn::BitCast(bytes, hn::Or(both, hn::ShiftLeft<4>(both))), bytes, codes + i);
  }
}
HWY_INLINE void UnpackTwoRows(const uint8_t* packed, int64_t columns, uint8_t* even, uint8_t* odd) {
  const hn::CappedTag<uint8_t, 32> d;
  for (int64_t i = 0; i < columns; i += static_cast<int64_t>(hn::Lanes(d))) {
    const auto both = hn::LoadU(d, packed + i);
    hn::StoreU(both, d, even + i);
    hn::StoreU(hn::ShiftRight<4>(both), d, odd + i);
  }
}

// Interleaves the bytes of the first eight rows with those of the last eight, which
// moves the top bit of a byte's index to the bottom.
template <class D, class V>
HWY_INLINE void InterleaveHalves(D d, const V (&from)[16], V (&to)[16]) {
  HWY_UNROLL(8)
  for (int i = 0; i < 8; ++i) {
    to[2 * i] = hn::InterleaveLower(d, from[i], from[i + 8]);
    to[2 * i + 1] = hn::InterleaveUpper(d, from[i], from[i + 8]);
  }
}

// Writes the transpose of 16 rows of 16 bytes: after four times, rows and columns
// have changed places.
HWY_INLINE void Transpose16(const uint8_t* from, int64_t from_stride, uint8_t* to,
                            int64_t to_stride) {
  const hn::CappedTag<uint8_t, 16> d;
  hn::Vec<decltype(d)> rows[16];
  hn::Vec<decltype(d)> others[16];
  HWY_UNROLL(16)
  for (int64_t i = 0; i < 16; ++i) rows[i] = hn::LoadU(d, from + i * from_stride);
  InterleaveHalves(d, rows, others);
  InterleaveHalves(d, others, rows);
  InterleaveHalves(d, rows, others);
  InterleaveHalves(d, others, rows);
  HWY_UNROLL(16)
  for (int64_t i = 0; i < 16; ++i) hn::StoreU(rows[i], d, to + i * to_stride);
}

// The same of [rows, columns] bytes, both multiples of 16.
inline void TransposeSquares(const uint8_t* from, int64_t from_stride, int64_t rows,
                             int64_t columns, uint8_t* to, int64_t to_stride) {
  for (int64_t i = 0; i < rows; i += 16) {
    for (int64_t j = 0; j < columns; j += 16) {
      Transpose16(from + i * from_stride + j, from_stride, to + j * to_stride + i, to_stride);
    }
  }
}

#endif  // HWY_TARGET != HWY_SCALAR
}  // namespace HWY_NAMESPACE
}  // namespace planewise
HWY_AFTER_NAMESPACE();

#endif  // PLANEWISE_CORE_QUANT_VECTOR_CODES_INL_H_
