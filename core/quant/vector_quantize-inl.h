// Quantizes tile by tile, for every format: a format is a scaling
// (vector_scaling-inl.h), and where codes and scales lie is a geometry
// (plane_geometry.h). Compiled for each instruction set as part of the files that
// include it.
//
// A cast of a tile takes the largest magnitude of each of its blocks, makes scales of
// them, then codes of the elements, for one plane or for both. Tiles that are not
// whole are filled up with zeros, and what is stored is cut: there is no other code for
// what vectors leave over, nor for NaN and infinity.
//
// Not here: checking requests, and what is written once (vector_quantizer.cc).

// Highway's guard: included once for each target.
#if defined(PLANEWISE_CORE_QUANT_VECTOR_QUANTIZE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLANEWISE_CORE_QUANT_VECTOR_QUANTIZE_INL_H_
#undef PLANEWISE_CORE_QUANT_VECTOR_QUANTIZE_INL_H_
#else
#define PLANEWISE_CORE_QUANT_VECTOR_QUANTIZE_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "absl/types/span.h"
#include "core/base/checked_math.h"
#include "core/quant/plane_geometry.h"
#include "core/quant/quantizer.h"
#include "core/quant/vector_amax-inl.h"
#include "core/quant/vector_codes-inl.h"
#include "core/quant/vector_plane_writer-inl.h"
#include "core/quant/vector_scaling-inl.h"
#include "core/quant/vector_small_float-inl.h"
#include "core/quant/vector_tile-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace planewise {
namespace HWY_NAMESPACE {
#if HWY_TARGET != HWY_SCALAR

// ---- Scales ------------------------------------------------------------------

// Of a tile's blocks, row by row of them.
template <typename Stored>
struct TileScales {
  int64_t columns = 0;  // blocks in a row of them
  alignas(kCacheLineBytes) Stored stored[kTileBlocksMax];
  // Those of blocks that are one column wide in the order of pairs of elements.
  alignas(kCacheLineBytes) float multipliers[kTileBlocksMax];
};

// Writes the largest magnitude of each block, and returns how many they are.
template <int64_t kBlock, typename HighPrecision>
int64_t LargestOfBlocks(const TileElements<HighPrecision>& elements, const PlaneGeometry& geometry,
                        HighPrecision* largest) {
  const HighPrecision* lines = elements.Row(0);
  int64_t stride = elements.stride();
  int64_t line_count = elements.rows();
  const int64_t columns = elements.columns();
  alignas(kCacheLineBytes) HighPrecision of_columns[kTileBlocksMax];
  if (geometry.block_rows > 1) {
    HighPrecision* of_bands = geometry.block_columns > 1 ? of_columns : largest;
    line_count = CeilDivide(elements.rows(), geometry.block_rows);
    for (int64_t band = 0; band < line_count; ++band) {
      const int64_t first = band * geometry.block_rows;
      const int64_t rows = std::min(geometry.block_rows, elements.rows() - first);
      LargestOfColumns(elements.Row(first), elements.stride(), rows, columns,
                       of_bands + band * columns);
    }
    lines = of_bands;
    stride = columns;
  }
  if (geometry.block_columns > 1) {
    LargestOfRuns<kBlock>(lines, stride, line_count, columns, largest);
  }
  return line_count * (columns / geometry.block_columns);
}

template <class Scaling, typename HighPrecision>
void ScaleBlocks(const TileElements<HighPrecision>& elements, const PlaneGeometry& geometry,
                 const Scaling& scaling, TileScales<typename Scaling::Stored>& scales) {
  alignas(kCacheLineBytes) HighPrecision largest[kTileBlocksMax];
  const int64_t count = LargestOfBlocks<Scaling::kBlock>(elements, geometry, largest);
  std::fill(largest + count, largest + RoundUp(count, kPairLanesMax), HighPrecision{});
  scales.columns = elements.columns() / geometry.block_columns;
  for (int64_t i = 0; i < count; i += PairLanes()) {
    const F32Pair amax = LoadMagnitudes(largest + i);
    const BlockScales first = scaling.Of(amax.first);
    const BlockScales second = scaling.Of(amax.second);
    StoreLanes<HighPrecision>({first.stored, second.stored}, scales.stored + i);
    const F32Pair multipliers = {first.multiplier, second.multiplier};
    if (geometry.block_columns == 1) {
      StorePair(multipliers, scales.multipliers + i);
    } else {
      StoreInOrder<HighPrecision>(multipliers, scales.multipliers + i);
    }
  }
}

// ---- Codes -------------------------------------------------------------------

// To nearest, for which it does not matter where in the plane an element is.
template <typename Element>
struct NearestRounding {
  template <typename HighPrecision, class Multipliers>
  void CodeRow(int64_t /*row*/, const HighPrecision* elements, Multipliers multipliers,
               int64_t columns, uint8_t* codes) const {
    for (int64_t i = 0; i < columns; i += PairLanes()) {
      const F32Pair magnitudes = LoadMagnitudes(elements + i);
      const F32Pair multiplier = multipliers.At(i);
      StoreCodes<Element>({CodesOf<Element>(hn::Mul(magnitudes.first, multiplier.first)),
                           CodesOf<Element>(hn::Mul(magnitudes.second, multiplier.second))},
                          elements + i, codes + i);
    }
  }
};

// A tile on its way into planes.
template <typename HighPrecision>
struct TileCast {
  const TileElements<HighPrecision>& elements;
  Tile tile;
  Upcoming upcoming;
};

// Codes the elements, those of row i under multipliers_of(i), for all of `writers`.
template <typename HighPrecision, class Element, class Rounding, typename MultipliersOf>
void CodeTile(const TileCast<HighPrecision>& cast, const Rounding& rounding,
              MultipliersOf multipliers_of, absl::Span<PlaneWriter<Element>* const> writers) {
  const TileElements<HighPrecision>& elements = cast.elements;
  CodeGroup group;
  group.columns = elements.columns();
  for (; group.first < elements.rows(); group.first += kGroupRows) {
    group.rows = std::min(kGroupRows, elements.rows() - group.first);
    for (int64_t i = 0; i < group.rows; ++i) {
      const int64_t row = group.first + i;
      cast.upcoming.FetchRow(row);
      rounding.CodeRow(row, elements.Row(row), multipliers_of(row), group.columns, group.Row(i));
    }
    for (PlaneWriter<Element>* writer : writers) {
      if (writer->stores_codes()) writer->TakeCodes(cast.tile, group);
    }
  }
  for (PlaneWriter<Element>* writer : writers) writer->FinishTile(cast.tile);
}

template <typename Element>
bool StoresCodes(absl::Span<PlaneWriter<Element>* const> writers) {
  return std::any_of(writers.begin(), writers.end(),
                     [](const PlaneWriter<Element>* writer) { return writer->stores_codes(); });
}

// ---- Casts -------------------------------------------------------------------

// Quantizes a tile for planes that have the same blocks, and so the same codes.
template <typename HighPrecision, class Scaling, class Rounding>
void CastTile(const TileCast<HighPrecision>& cast, const Scaling& scaling, const Rounding& rounding,
              absl::Span<PlaneWriter<typename Scaling::Element>* const> writers) {
  const PlaneGeometry& geometry = writers.front()->geometry();
  TileScales<typename Scaling::Stored> scales;
  ScaleBlocks(cast.elements, geometry, scaling, scales);
  for (const auto* writer : writers) writer->WriteScales(cast.tile, scales.stored, scales.columns);
  if (!StoresCodes(writers)) return;
  const auto multipliers_of = [&](int64_t row) {
    return scales.multipliers + row / geometry.block_rows * scales.columns;
  };
  if (geometry.block_columns == 1) {
    CodeTile(
        cast, rounding, [&](int64_t row) { return OfColumns{multipliers_of(row)}; }, writers);
  } else {
    using Multipliers = OfRuns<Scaling::kBlock, HighPrecision>;
    CodeTile(
        cast, rounding, [&](int64_t row) { return Multipliers{multipliers_of(row)}; }, writers);
  }
}

template <typename HighPrecision, typename Element, class Rounding>
void CastTile(const TileCast<HighPrecision>& cast, const PerTensorScaling<Element>& scaling,
              const Rounding& rounding, absl::Span<PlaneWriter<Element>* const> writers) {
  if (!StoresCodes(writers)) return;
  CodeTile(
      cast, rounding, [&](int64_t) { return OfRow{scaling.multiplier()}; }, writers);
}

// ---- Planes ------------------------------------------------------------------

// The planes of a matrix in the making.
template <typename Element>
class PlaneWriters {
 public:
  PlaneWriters(const QuantizeSpec& spec, const PlaneSpan* row, const PlaneSpan* column) {
    for (const PlaneSpan* plane : {row, column}) {
      if (plane == nullptr) continue;
      auto& writer = plane == row ? row_ : column_;
      writer.emplace(GeometryOf(spec.format, spec.geometry, plane->layout), *plane);
      all_[count_++] = &*writer;
      row_multiple_ = std::max(row_multiple_, writer->row_multiple());
    }
  }
  PlaneWriters(const PlaneWriters&) = delete;
  PlaneWriters& operator=(const PlaneWriters&) = delete;

  absl::Span<PlaneWriter<Element>* const> all() const { return {all_, count_}; }
  int64_t row_multiple() const { return row_multiple_; }
  bool share_blocks() const {
    return count_ == 2 && row_->geometry().block_rows == column_->geometry().block_rows &&
           row_->geometry().block_columns == column_->geometry().block_columns;
  }

 private:
  std::optional<PlaneWriter<Element>> row_;
  std::optional<PlaneWriter<Element>> column_;
  PlaneWriter<Element>* all_[2] = {};
  size_t count_ = 0;
  int64_t row_multiple_ = 1;
};

// Rows `rows` of the planes, from one reading of the matrix.
template <typename HighPrecision, class Scaling>
void QuantizePlanes(const MatrixView& src, RowRange rows, const Scaling& scaling,
                    PlaneWriters<typename Scaling::Element>& writers) {
  const NearestRounding<typename Scaling::Element> rounding;
  TileElements<HighPrecision> elements;
  Tiles(rows, src.columns).ForEach([&](const Tile& tile, const Tile& next) {
    elements.Load(src, tile, writers.row_multiple(), kTileColumns);
    const TileCast<HighPrecision> cast = {elements, tile,
                                          TileElements<HighPrecision>::UpcomingOf(src, next)};
    if (writers.share_blocks()) return CastTile(cast, scaling, rounding, writers.all());
    for (size_t i = 0; i < writers.all().size(); ++i) {
      CastTile(cast, scaling, rounding, writers.all().subspan(i, 1));
    }
  });
}

#endif  // HWY_TARGET != HWY_SCALAR
}  // namespace HWY_NAMESPACE
}  // namespace planewise
HWY_AFTER_NAMESPACE();

#endif  // PLANEWISE_CORE_QUANT_VECTOR_QUANTIZE_INL_H_
