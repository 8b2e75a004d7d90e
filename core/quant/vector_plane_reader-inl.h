// Takes a tile's codes and scales out of one plane: the way back of
// vector_plane_writer-inl.h. Compiled for each instruction set as part of the files
// that include it.
//
// Not here: what they stand for (vector_dequantize-inl.h).

// Highway's guard: included once for each target.
#if defined(PLANEWISE_CORE_QUANT_VECTOR_PLANE_READER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLANEWISE_CORE_QUANT_VECTOR_PLANE_READER_INL_H_
#undef PLANEWISE_CORE_QUANT_VECTOR_PLANE_READER_INL_H_
#else
#define PLANEWISE_CORE_QUANT_VECTOR_PLANE_READER_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/base/checked_math.h"
#include "core/quant/plane_geometry.h"
#include "core/quant/quantizer.h"
#include "core/quant/vector_codes-inl.h"
#include "core/quant/vector_tile-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace planewise {
namespace HWY_NAMESPACE {
#if HWY_TARGET != HWY_SCALAR

template <typename Element>
class PlaneReader {
 public:
  PlaneReader(const PlaneGeometry& geometry, const ConstPlaneSpan& span)
      : geometry_(geometry), span_(span) {}

  // Rows and columns of a tile that have one scale.
  int64_t scale_rows() const { return RunOf(geometry_.scale_rows_log2, kTileRows); }
  int64_t scale_columns() const { return RunOf(geometry_.scale_columns_log2, kTileColumns); }

  // The scales of a tile, row by row of them, `stride` to a row.
  template <typename Scale>
  void ReadScales(const Tile& tile, Scale* scales, int64_t stride) const {
    const int64_t count = CeilDivide(tile.columns, scale_columns());
    const int64_t step = geometry_.scales_transposed ? geometry_.scale_stride : 1;
    for (int64_t i = 0; i < tile.rows; i += scale_rows(), scales += stride) {
      const int64_t first = geometry_.ScaleIndex(tile.row + i, tile.column);
      const uint8_t* from = span_.scales + first * kBytes<Scale>;
      if (step == 1) {
        std::memcpy(scales, from, static_cast<size_t>(count * kBytes<Scale>));
        continue;
      }
      for (int64_t j = 0; j < count; ++j, from += step * kBytes<Scale>) {
        std::memcpy(&scales[j], from, sizeof(Scale));
      }
    }
  }

  // Before the first group of a tile.
  void StartTile(const Tile& tile) {
    if (!geometry_.payload_transposed) return;
    for (int64_t j = 0; j < tile.columns; ++j) {
      std::memcpy(columns_ + j * kTileRows, CodesAt(tile.row, tile.column + j),
                  static_cast<size_t>(CeilDivide(tile.rows, kPerByte)));
    }
  }

  // The codes of the group's rows; beside those of the tile, any.
  void ReadCodes(const Tile& tile, CodeGroup& group) const {
    if (geometry_.payload_transposed) {
      ReadColumns(group);
    } else {
      ReadRows(tile, group);
    }
  }

  // What StartTile or ReadCodes will read of `tile`.
  Upcoming UpcomingOf(const Tile& tile) const {
    if (tile.rows == 0) return {};
    const uint8_t* first = CodesAt(tile.row, tile.column);
    const int64_t stride_bytes = geometry_.payload_stride / kPerByte;
    if (geometry_.payload_transposed) {
      return {first, stride_bytes, tile.columns, tile.rows / kPerByte};
    }
    return {first, stride_bytes, tile.rows, tile.columns / kPerByte};
  }

 private:
  static constexpr int64_t kPerByte = kCodesPerByte<Element>;
  template <typename Scale>
  static constexpr int64_t kBytes = sizeof(Scale);

  static int64_t RunOf(int log2, int64_t tile_extent) {
    return std::min(int64_t{1} << log2, tile_extent);
  }

  const uint8_t* CodesAt(int64_t i, int64_t j) const {
    return span_.payload + geometry_.PayloadIndex(i, j) / kPerByte;
  }

  void ReadRows(const Tile& tile, CodeGroup& group) const {
    const size_t bytes = static_cast<size_t>(CeilDivide(tile.columns, kPerByte));
    for (int64_t i = 0; i < group.rows; ++i) {
      const uint8_t* codes = CodesAt(tile.row + group.first + i, tile.column);
      if constexpr (kPerByte == 1) {
        std::memcpy(group.Row(i), codes, bytes);
      } else {
        uint8_t packed[kTileColumns / 2] = {};
        std::memcpy(packed, codes, bytes);
        UnpackRow(packed, kTileColumns, group.Row(i));
      }
    }
  }

  void ReadColumns(CodeGroup& group) const {
    const uint8_t* columns = columns_ + group.first / kPerByte;
    const int64_t columns_of_codes = RoundUp(group.columns, 16);
    if constexpr (kPerByte == 1) {
      TransposeSquares(columns, kTileRows, columns_of_codes, kGroupRows, group.codes, kTileColumns);
    } else {
      uint8_t packed[kGroupRows / 2 * kTileColumns];
      TransposeSquares(columns, kTileRows, columns_of_codes, kGroupRows / 2, packed, kTileColumns);
      for (int64_t i = 0; i < kGroupRows; i += 2) {
        UnpackTwoRows(packed + i / 2 * kTileColumns, kTileColumns, group.Row(i), group.Row(i + 1));
      }
    }
  }

  PlaneGeometry geometry_;
  ConstPlaneSpan span_;
  // [kTileColumns, kTileRows], of a tile that is stored transposed.
  alignas(kCacheLineBytes) uint8_t columns_[kTileElements] = {};
};

#endif  // HWY_TARGET != HWY_SCALAR
}  // namespace HWY_NAMESPACE
}  // namespace planewise
HWY_AFTER_NAMESPACE();

#endif  // PLANEWISE_CORE_QUANT_VECTOR_PLANE_READER_INL_H_
