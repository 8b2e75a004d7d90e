// Dequantizes tile by tile, for every format: what vector_quantize-inl.h made, and any
// other bytes of such planes. Compiled for each instruction set as part of the files
// that include it.
//
// Not here: checking requests (vector_quantizer.cc).

// Highway's guard: included once for each target.
#if defined(PLANEWISE_CORE_QUANT_VECTOR_DEQUANTIZE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLANEWISE_CORE_QUANT_VECTOR_DEQUANTIZE_INL_H_
#undef PLANEWISE_CORE_QUANT_VECTOR_DEQUANTIZE_INL_H_
#else
#define PLANEWISE_CORE_QUANT_VECTOR_DEQUANTIZE_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "core/base/checked_math.h"
#include "core/quant/plane_geometry.h"
#include "core/quant/quantizer.h"
#include "core/quant/vector_codes-inl.h"
#include "core/quant/vector_plane_reader-inl.h"
#include "core/quant/vector_scaling-inl.h"
#include "core/quant/vector_small_float-inl.h"
#include "core/quant/vector_tile-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace planewise {
namespace HWY_NAMESPACE {
#if HWY_TARGET != HWY_SCALAR

// What the codes of a tile are multiplied by, row by row of scales.
template <typename Stored>
struct TileFactors {
  int64_t columns = 0;  // scales in a row of them
  Stored stored[kTileBlocksMax];
  // Those that belong to one column in the order of pairs of elements.
  alignas(kCacheLineBytes) float factors[kTileBlocksMax];
};

template <typename HighPrecision, class Scaling>
void ReadFactors(const PlaneReader<typename Scaling::Element>& reader, const Tile& tile,
                 const Scaling& scaling, TileFactors<typename Scaling::Stored>& factors) {
  factors.columns = kTileColumns / reader.scale_columns();
  reader.ReadScales(tile, factors.stored, factors.columns);
  const int64_t count = CeilDivide(tile.rows, reader.scale_rows()) * factors.columns;
  for (int64_t i = 0; i < count; i += PairLanes()) {
    const U32Pair stored = LoadLanes<HighPrecision>(factors.stored + i);
    const F32Pair pair = {scaling.FactorsOf(stored.first), scaling.FactorsOf(stored.second)};
    if (reader.scale_columns() == 1) {
      StorePair(pair, factors.factors + i);
    } else {
      StoreInOrder<HighPrecision>(pair, factors.factors + i);
    }
  }
}

template <typename Element, typename HighPrecision, class Factors>
void ValuesOfRow(const uint8_t* codes, Factors factors, int64_t columns, HighPrecision* values) {
  for (int64_t i = 0; i < columns; i += PairLanes()) {
    const U32Pair code = LoadLanes<HighPrecision>(codes + i);
    const F32Pair factor = factors.At(i);
    StoreNarrow({hn::Mul(WidenCodes<Element>(code.first), factor.first),
                 hn::Mul(WidenCodes<Element>(code.second), factor.second)},
                values + i);
  }
}

// Rows `rows` of dst: the values of a plane's codes.
template <typename HighPrecision, class Scaling>
void DequantizePlane(const PlaneGeometry& geometry, const ConstPlaneSpan& plane,
                     const Scaling& scaling, const MutableMatrixView& dst, RowRange rows) {
  using Element = typename Scaling::Element;
  PlaneReader<Element> reader(geometry, plane);
  const ByteWriter writer(dst.elements() * int64_t{sizeof(HighPrecision)});
  // Zero to begin with, since vectors read beyond what a tile has.
  TileFactors<typename Scaling::Stored> factors = {};
  CodeGroup group = {};
  alignas(kCacheLineBytes) HighPrecision values[kTileColumns];
  Tiles(rows, dst.columns).ForEach([&](const Tile& tile, const Tile& next) {
    const Upcoming upcoming = reader.UpcomingOf(next);
    ReadFactors<HighPrecision>(reader, tile, scaling, factors);
    reader.StartTile(tile);
    group.columns = tile.columns;
    for (group.first = 0; group.first < tile.rows; group.first += kGroupRows) {
      group.rows = std::min(kGroupRows, tile.rows - group.first);
      reader.ReadCodes(tile, group);
      for (int64_t i = 0; i < group.rows; ++i) {
        const int64_t row = group.first + i;
        upcoming.FetchRow(row);
        const float* of_row = factors.factors + row / reader.scale_rows() * factors.columns;
        if (reader.scale_columns() == 1) {
          ValuesOfRow<Element>(group.Row(i), OfColumns{of_row}, tile.columns, values);
        } else {
          ValuesOfRow<Element>(group.Row(i), OfRuns<Scaling::kBlock, HighPrecision>{of_row},
                               tile.columns, values);
        }
        auto* target = static_cast<HighPrecision*>(dst.data);
        writer.Write(values, tile.columns * int64_t{sizeof(HighPrecision)},
                     target + (tile.row + row) * dst.columns + tile.column);
      }
    }
  });
}

#endif  // HWY_TARGET != HWY_SCALAR
}  // namespace HWY_NAMESPACE
}  // namespace planewise
HWY_AFTER_NAMESPACE();

#endif  // PLANEWISE_CORE_QUANT_VECTOR_DEQUANTIZE_INL_H_
