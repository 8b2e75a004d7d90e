#include "core/quant/vector_mxfp8.h"

// Memory is read and written in tiles of up to kTileColumns columns: one row of
// them if only a row plane is wanted, else 32, so that both planes are made from
// one reading. Blocks that hold a NaN or an infinity, and columns left over
// beside blocks of 32, are left to the normative code (mxfp8_block.h). What
// remains is finite: no value saturates and no comparison meets a NaN.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/quant/mxfp8_block.h"
#include "core/quant/visit_dtype.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/quant/vector_mxfp8.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, which includes this file again for each target.
#include "core/quant/vector_small_float-inl.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace planewise {
namespace HWY_NAMESPACE {
#if HWY_TARGET == HWY_SCALAR

// A machine without vectors.
void QuantizeMxfp8(MatrixView src, const QuantizeSpec& spec, RowRange rows, const PlaneSpan* row,
                   const PlaneSpan* column) {
  (void)ScalarQuantizer().Quantize(src, spec, {}, rows, row, column);
}
void DequantizeMxfp8(const ConstPlaneSpan& plane, MutableMatrixView dst, RowRange rows) {
  (void)ScalarQuantizer().Dequantize(plane, dst, rows);
}

#else

// 32 rows of this many columns are a fraction of a second-level cache: the
// column plane's second pass over them finds them there.
constexpr int64_t kTileColumns = 1024;
constexpr int64_t kTileBlocks = kTileColumns / kMxfp8Block;

HWY_INLINE void PrefetchForWriting(const void* bytes) { __builtin_prefetch(bytes, 1); }

// The largest magnitude, as bits, of each of `blocks` blocks in a row. Fetches
// what lies `ahead` elements further, to be read next.
template <typename Source>
void LargestOfRowBlocks(const Source* source, int64_t blocks, int64_t ahead,
                        BitsOf<Source>* largest) {
  const hn::CappedTag<BitsOf<Source>, kMxfp8Block> d;
  const auto mask = hn::Set(d, kMagnitudeMask<Source>);
  for (int64_t block = 0; block < blocks; ++block, source += kMxfp8Block) {
    auto all = hn::Zero(d);
    for (size_t i = 0; i < kMxfp8Block; i += hn::Lanes(d)) {
      hwy::Prefetch(source + i + ahead);
      all = hn::Max(all, hn::And(hn::LoadU(d, Bits(source) + i), mask));
    }
    largest[block] = LargestLane(d, all);
  }
}

// Raises the largest magnitude so far of each of `columns` columns by one row.
template <typename Source>
void RaiseLargestOfColumns(const Source* source, int64_t columns, int64_t ahead,
                           BitsOf<Source>* largest) {
  const hn::CappedTag<BitsOf<Source>, kMxfp8Block> d;
  const auto mask = hn::Set(d, kMagnitudeMask<Source>);
  for (int64_t i = 0; i < columns; i += static_cast<int64_t>(hn::Lanes(d))) {
    hwy::Prefetch(source + i + ahead);
    const auto magnitudes = hn::And(hn::LoadU(d, Bits(source) + i), mask);
    hn::StoreU(hn::Max(hn::LoadU(d, largest + i), magnitudes), d, largest + i);
  }
}

// As Mxfp8Scale, of finite maxima.
template <typename Element>
HWY_INLINE U32 Mxfp8Scales(F32 amax) {
  const U32Tag u32;
  constexpr float kReciprocalOfMax = 1.0f / Element::kMax;
  const U32 bits = hn::BitCast(u32, hn::Mul(amax, hn::Set(F32Tag(), kReciprocalOfMax)));
  // Any mantissa bit carries into the exponent; among subnormals, only what lies
  // above 2^-127 does.
  const U32 rounded_up = hn::ShiftRight<23>(hn::Add(bits, hn::Set(u32, 0x7FFFFFu)));
  return hn::IfThenElseZero(hn::Gt(bits, hn::Set(u32, 0x400000u)), rounded_up);
}

// The scales of blocks with finite maxima; of other blocks, anything.
template <typename Element, typename Source>
void ScalesOf(const BitsOf<Source>* largest, int64_t count, uint8_t* scales) {
  for (int64_t i = 0; i < count; i += PairLanes()) {
    const F32Pair amax = LoadMagnitudes(reinterpret_cast<const Source*>(largest + i));
    StoreBytes<Source>({Mxfp8Scales<Element>(amax.first), Mxfp8Scales<Element>(amax.second)},
                       scales + i);
  }
}

// What the elements of each of `count` blocks are multiplied by, in the order of
// pairs of HighPrecision elements. By its bits: no finite maximum needs the
// subnormal of b = 254.
template <typename HighPrecision>
void EncodeMultipliersOf(const uint8_t* scales, int64_t count, float* multipliers) {
  const auto multiplier = [](U32 scale) {
    const U32 exponent = hn::Sub(hn::Set(U32Tag(), ScaleE8M0::kMax), scale);
    return hn::BitCast(F32Tag(), hn::ShiftLeft<23>(exponent));
  };
  for (int64_t i = 0; i < count; i += PairLanes()) {
    const U32Pair scale = LoadBytes<HighPrecision>(scales + i);
    StorePair({multiplier(scale.first), multiplier(scale.second)}, multipliers + i);
  }
}

template <typename Element, typename Source>
HWY_INLINE void QuantizePair(const Source* source, F32Pair multiplier, Element* codes) {
  const F32Pair values = LoadMagnitudes(source);
  const U32Pair magnitudes = {RoundToSmallFloats<Element::kMantissaBits, Element::kBias>(
                                  hn::Mul(values.first, multiplier.first)),
                              RoundToSmallFloats<Element::kMantissaBits, Element::kBias>(
                                  hn::Mul(values.second, multiplier.second))};
  StoreSignedBytes(magnitudes, source, reinterpret_cast<uint8_t*>(codes));
}

// At most kTileBlocks blocks of one row.
template <typename Element, typename Source>
void QuantizeRowBlocks(const Source* source, int64_t blocks, int64_t ahead, Element* codes,
                       uint8_t* scales) {
  BitsOf<Source> largest[kTileBlocks] = {};
  uint8_t tile_scales[kTileBlocks];
  float multipliers[kTileBlocks];
  LargestOfRowBlocks(source, blocks, ahead, largest);
  ScalesOf<Element, Source>(largest, kTileBlocks, tile_scales);
  EncodeMultipliersOf<float>(tile_scales, kTileBlocks, multipliers);
  std::copy_n(tile_scales, blocks, scales);
  for (int64_t block = 0; block < blocks; ++block) {
    const F32 multiplier = hn::Set(F32Tag(), multipliers[block]);
    const int64_t first = block * kMxfp8Block;
    PrefetchForWriting(codes + first + ahead);
    for (int64_t i = first; i < first + kMxfp8Block; i += PairLanes()) {
      QuantizePair(source + i, {multiplier, multiplier}, codes + i);
    }
  }
  for (int64_t block = 0; block < blocks; ++block) {
    if (largest[block] < kInfinityBits<Source>) continue;
    const int64_t first = block * kMxfp8Block;
    scales[block] = QuantizeMxfp8Block(source + first, kMxfp8Block, 1, codes + first).bits;
  }
}

// One scale row of a column plane: up to 32 rows of up to kTileColumns columns,
// a multiple of 32, whose largest magnitudes are known.
template <typename Element, typename Source>
void QuantizeColumnBlocks(const Source* source, int64_t rows, int64_t columns, int64_t stride,
                          const BitsOf<Source>* largest, Element* codes, uint8_t* scales) {
  float multipliers[kTileColumns];
  ScalesOf<Element, Source>(largest, columns, scales);
  EncodeMultipliersOf<Source>(scales, columns, multipliers);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < columns; i += PairLanes()) {
      const int64_t at = row * stride + i;
      PrefetchForWriting(codes + at + stride);
      QuantizePair(source + at, LoadPair(multipliers + i), codes + at);
    }
  }
  for (int64_t i = 0; i < columns; ++i) {
    if (largest[i] < kInfinityBits<Source>) continue;
    scales[i] = QuantizeMxfp8Block(source + i, rows, stride, codes + i).bits;
  }
}

// Where a tile lies in a matrix of `stride` columns.
struct Tile {
  int64_t first_row;
  int64_t rows;
  int64_t first_column;
  int64_t columns;
  int64_t stride;

  int64_t first() const { return first_row * stride + first_column; }
  int64_t whole_block_columns() const { return columns / kMxfp8Block * kMxfp8Block; }
};

uint8_t* RowScales(const PlaneSpan& plane, const Tile& tile, int64_t row) {
  return plane.scales + (tile.first_row + row) * plane.layout.scale_columns +
         tile.first_column / kMxfp8Block;
}

template <typename Element, typename Source>
void QuantizeTile(const Source* matrix, const Tile& tile, const PlaneSpan* row_plane,
                  const PlaneSpan* column_plane) {
  const int64_t columns = tile.whole_block_columns();
  // What comes next lies in the next row of a tall tile, else to the right.
  const int64_t ahead = tile.rows > 1 ? tile.stride : kTileColumns;
  BitsOf<Source> largest[kTileColumns] = {};
  for (int64_t row = 0; row < tile.rows; ++row) {
    const int64_t at = tile.first() + row * tile.stride;
    if (row_plane != nullptr) {
      QuantizeRowBlocks(matrix + at, columns / kMxfp8Block, ahead,
                        reinterpret_cast<Element*>(row_plane->payload) + at,
                        RowScales(*row_plane, tile, row));
    }
    if (column_plane != nullptr) RaiseLargestOfColumns(matrix + at, columns, ahead, largest);
  }
  if (column_plane == nullptr) return;
  const Source* source = matrix + tile.first();
  Element* codes = reinterpret_cast<Element*>(column_plane->payload) + tile.first();
  uint8_t* scales = column_plane->scales +
                    tile.first_row / kMxfp8Block * column_plane->layout.scale_columns +
                    tile.first_column;
  QuantizeColumnBlocks(source, tile.rows, columns, tile.stride, largest, codes, scales);
  for (int64_t i = columns; i < tile.columns; ++i) {
    scales[i] = QuantizeMxfp8Block(source + i, tile.rows, tile.stride, codes + i).bits;
  }
}

// As Element::ToFloat.
template <typename Element>
HWY_INLINE F32 WidenCodes(U32 codes) {
  const F32Tag f32;
  const U32Tag u32;
  constexpr bool kHasInfinity = std::is_same_v<Element, Float8E5M2>;
  const U32 magnitude = hn::And(codes, hn::Set(u32, 0x7Fu));
  U32 wide = hn::BitCast(u32, WidenSmallFloats<Element::kMantissaBits, Element::kBias>(magnitude));
  if constexpr (kHasInfinity) {
    wide = hn::IfThenElse(hn::Gt(magnitude, hn::Set(u32, Element::kMaxCode)),
                          hn::Set(u32, kInfinityBits<float>), wide);
  }
  wide = hn::Or(wide, hn::ShiftLeft<24>(hn::And(codes, hn::Set(u32, 0x80u))));
  constexpr uint32_t kLastNumber = Element::kMaxCode + (kHasInfinity ? 1 : 0);
  const auto is_nan = hn::RebindMask(f32, hn::Gt(magnitude, hn::Set(u32, kLastNumber)));
  return hn::IfThenElse(is_nan, hn::Set(f32, kCanonicalNan), hn::BitCast(f32, wide));
}

template <typename Element, typename Target>
HWY_INLINE void DequantizePair(const Element* codes, F32Pair factor, Target* values) {
  const U32Pair bytes = LoadBytes<Target>(reinterpret_cast<const uint8_t*>(codes));
  StoreNarrow({hn::Mul(WidenCodes<Element>(bytes.first), factor.first),
               hn::Mul(WidenCodes<Element>(bytes.second), factor.second)},
              values);
}

// One row of a row plane.
template <typename Element, typename Target>
void DequantizeRow(const Element* codes, const uint8_t* scales, int64_t columns, Target* values) {
  for (int64_t first = 0; first < columns; first += kMxfp8Block, ++scales) {
    const ScaleE8M0 scale{*scales};
    if (columns - first < kMxfp8Block) {
      return DequantizeMxfp8Block(codes + first, scale, columns - first, 1, values + first);
    }
    const F32 factor = hn::Set(F32Tag(), scale.ToFloat());
    for (int64_t i = first; i < first + kMxfp8Block; i += PairLanes()) {
      DequantizePair(codes + i, {factor, factor}, values + i);
    }
  }
}

// As ScaleE8M0::ToFloat, for `count` scales in the order of pairs of Target.
template <typename Target>
void FactorsOf(const uint8_t* scales, int64_t count, float* factors) {
  const auto factor = [](U32 scale) {
    const U32Tag u32;
    const U32 power = hn::IfThenElse(hn::Eq(scale, hn::Zero(u32)), hn::Set(u32, 0x400000u),
                                     hn::ShiftLeft<23>(scale));
    const auto is_nan = hn::RebindMask(F32Tag(), hn::Eq(scale, hn::Set(u32, ScaleE8M0::kNan)));
    return hn::IfThenElse(is_nan, hn::Set(F32Tag(), kCanonicalNan), hn::BitCast(F32Tag(), power));
  };
  for (int64_t i = 0; i < count; i += PairLanes()) {
    const U32Pair scale = LoadBytes<Target>(scales + i);
    StorePair({factor(scale.first), factor(scale.second)}, factors + i);
  }
}

// A tile of one scale row of a column plane.
template <typename Element, typename Target>
void DequantizeColumnTile(const Element* codes, const uint8_t* scales, const Tile& tile,
                          Target* values) {
  float factors[kTileColumns];
  const int64_t columns = tile.whole_block_columns();
  FactorsOf<Target>(scales, columns, factors);
  for (int64_t row = 0; row < tile.rows; ++row) {
    for (int64_t i = 0; i < columns; i += PairLanes()) {
      const int64_t at = row * tile.stride + i;
      DequantizePair(codes + at, LoadPair(factors + i), values + at);
    }
  }
  for (int64_t i = columns; i < tile.columns; ++i) {
    DequantizeMxfp8Block(codes + i, ScaleE8M0{scales[i]}, tile.rows, tile.stride, values + i);
  }
}

template <typename Function>
void ForEachTile(int64_t rows, int64_t columns, int64_t tile_rows, Function function) {
  for (int64_t i = 0; i < rows; i += tile_rows) {
    for (int64_t j = 0; j < columns; j += kTileColumns) {
      function(
          Tile{i, std::min(tile_rows, rows - i), j, std::min(kTileColumns, columns - j), columns});
    }
  }
}

// Rows from `first_row` on, as a plane of their own.
template <typename Span>
Span PlaneFrom(const Span& plane, int64_t first_row) {
  const int64_t rows_per_scale_row = plane.layout.kind == PlaneKind::kRow ? 1 : kMxfp8Block;
  Span part = plane;
  part.payload += first_row * plane.layout.payload_columns;
  part.scales += first_row / rows_per_scale_row * plane.layout.scale_columns;
  return part;
}

void QuantizeMxfp8(MatrixView src, const QuantizeSpec& spec, RowRange rows, const PlaneSpan* row,
                   const PlaneSpan* column) {
  PlaneSpan row_part;
  PlaneSpan column_part;
  if (row != nullptr) row_part = PlaneFrom(*row, rows.first);
  if (column != nullptr) column_part = PlaneFrom(*column, rows.first);
  const int64_t tile_rows = column == nullptr ? 1 : kMxfp8Block;
  VisitHighPrecision(src.dtype, [&](auto source_tag) {
    VisitFloat8(spec.element, [&](auto element_tag) {
      const auto* matrix =
          static_cast<const decltype(source_tag)*>(src.data) + rows.first * src.columns;
      ForEachTile(rows.count, src.columns, tile_rows, [&](const Tile& tile) {
        QuantizeTile<decltype(element_tag)>(matrix, tile, row == nullptr ? nullptr : &row_part,
                                            column == nullptr ? nullptr : &column_part);
      });
    });
  });
}

void DequantizeMxfp8(const ConstPlaneSpan& whole, MutableMatrixView dst, RowRange rows) {
  const ConstPlaneSpan plane = PlaneFrom(whole, rows.first);
  VisitHighPrecision(dst.dtype, [&](auto target_tag) {
    VisitFloat8(plane.layout.payload_dtype, [&](auto element_tag) {
      auto* values = static_cast<decltype(target_tag)*>(dst.data) + rows.first * dst.columns;
      const auto* codes = reinterpret_cast<const decltype(element_tag)*>(plane.payload);
      const int64_t scale_columns = plane.layout.scale_columns;
      if (plane.layout.kind == PlaneKind::kRow) {
        for (int64_t i = 0; i < rows.count; ++i) {
          DequantizeRow(codes + i * dst.columns, plane.scales + i * scale_columns, dst.columns,
                        values + i * dst.columns);
        }
        return;
      }
      ForEachTile(rows.count, dst.columns, kMxfp8Block, [&](const Tile& tile) {
        const uint8_t* scales =
            plane.scales + tile.first_row / kMxfp8Block * scale_columns + tile.first_column;
        DequantizeColumnTile(codes + tile.first(), scales, tile, values + tile.first());
      });
    });
  });
}

#endif  // HWY_TARGET == HWY_SCALAR
}  // namespace HWY_NAMESPACE
}  // namespace planewise
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace planewise {

HWY_EXPORT(QuantizeMxfp8);
HWY_EXPORT(DequantizeMxfp8);

void VectorQuantizeMxfp8(MatrixView src, const QuantizeSpec& spec, RowRange rows,
                         const PlaneSpan* row, const PlaneSpan* column) {
  HWY_DYNAMIC_DISPATCH(QuantizeMxfp8)(src, spec, rows, row, column);
}

void VectorDequantizeMxfp8(const ConstPlaneSpan& plane, MutableMatrixView dst, RowRange rows) {
  HWY_DYNAMIC_DISPATCH(DequantizeMxfp8)(plane, dst, rows);
}

}  // namespace planewise
#endif  // HWY_ONCE
