// Where a tile's codes and scales go in one plane: packed, transposed and cut to the
// plane's size. Compiled for each instruction set as part of the files that include it.
//
// Not here: how they are made (vector_quantize-inl.h); the way back
// (vector_plane_reader-inl.h).

// Highway's guard: included once for each target.
#if defined(PLANEWISE_CORE_QUANT_VECTOR_PLANE_WRITER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLANEWISE_CORE_QUANT_VECTOR_PLANE_WRITER_INL_H_
#undef PLANEWISE_CORE_QUANT_VECTOR_PLANE_WRITER_INL_H_
#else
#define PLANEWISE_CORE_QUANT_VECTOR_PLANE_WRITER_INL_H_
#endif

#include <algorithm>
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
class PlaneWriter {
 public:
  PlaneWriter(const PlaneGeometry& geometry, const PlaneSpan& span)
      : geometry_(geometry), span_(span), bytes_(span.layout.payload_bytes) {}

  const PlaneGeometry& geometry() const { return geometry_; }
  // A column plane may have the row plane's codes.
  bool stores_codes() const { return !span_.layout.shares_row_payload; }
  // Codes are transposed in squares of 16 bytes.
  int64_t row_multiple() const { return transposes() ? 16 * kPerByte : 1; }

  // `scales` are those of a tile's blocks, `stride` to a row of blocks. Where lines of
  // a block have scales of their own, each gets the block's.
  template <typename Scale>
  void WriteScales(const Tile& tile, const Scale* scales, int64_t stride) const {
    const int64_t row_step = int64_t{1} << geometry_.scale_rows_log2;
    const int64_t column_step = int64_t{1} << geometry_.scale_columns_log2;
    const int64_t copies = geometry_.block_columns / column_step;
    const int64_t count = CeilDivide(tile.columns, column_step);
    const int64_t step = geometry_.scales_transposed ? geometry_.scale_stride : 1;
    for (int64_t i = 0; i < tile.rows; i += row_step) {
      const Scale* from = scales + i / geometry_.block_rows * stride;
      uint8_t* to = span_.scales + geometry_.ScaleIndex(tile.row + i, tile.column) * kBytes<Scale>;
      if (copies == 1 && step == 1) {
        std::memcpy(to, from, static_cast<size_t>(count * kBytes<Scale>));
        continue;
      }
      for (int64_t left = count; left > 0; left -= copies, ++from) {
        for (int64_t j = std::min(copies, left); j > 0; --j, to += step * kBytes<Scale>) {
          std::memcpy(to, from, sizeof(Scale));
        }
      }
    }
  }

  void TakeCodes(const Tile& tile, const CodeGroup& group) {
    if (transposes()) {
      Transpose(group);
    } else {
      WriteRows(tile, group);
    }
  }

  // After the last group of a tile.
  void FinishTile(const Tile& tile) const {
    if (!transposes()) return;
    for (int64_t j = 0; j < tile.columns; ++j) {
      bytes_.Write(transposed_ + j * kTileRows, CeilDivide(tile.rows, kPerByte),
                   CodesAt(tile.row, tile.column + j));
    }
  }

 private:
  static constexpr int64_t kPerByte = kCodesPerByte<Element>;
  template <typename Scale>
  static constexpr int64_t kBytes = sizeof(Scale);

  bool transposes() const { return stores_codes() && geometry_.payload_transposed; }

  uint8_t* CodesAt(int64_t i, int64_t j) const {
    return span_.payload + geometry_.PayloadIndex(i, j) / kPerByte;
  }

  void WriteRows(const Tile& tile, const CodeGroup& group) const {
    const int64_t rows = std::min(group.rows, tile.rows - group.first);
    for (int64_t i = 0; i < rows; ++i) {
      const uint8_t* row = group.Row(i);
      alignas(kCacheLineBytes) uint8_t packed[kTileColumns / 2];
      if constexpr (kPerByte == 2) {
        PackRow(row, group.columns, packed);
        row = packed;
      }
      bytes_.Write(row, tile.columns / kPerByte, CodesAt(tile.row + group.first + i, tile.column));
    }
  }

  void Transpose(const CodeGroup& group) {
    const uint8_t* rows = group.codes;
    alignas(kCacheLineBytes) uint8_t packed[kGroupRows / 2 * kTileColumns];
    if constexpr (kPerByte == 2) {
      for (int64_t i = 0; i < group.rows; i += 2) {
        PackTwoRows(group.Row(i), group.Row(i + 1), group.columns, packed + i / 2 * kTileColumns);
      }
      rows = packed;
    }
    TransposeSquares(rows, kTileColumns, group.rows / kPerByte, group.columns,
                     transposed_ + group.first / kPerByte, kTileRows);
  }

  PlaneGeometry geometry_;
  PlaneSpan span_;
  ByteWriter bytes_;
  // [kTileColumns, kTileRows]: the columns of the tile, as far as they are there.
  alignas(kCacheLineBytes) uint8_t transposed_[kTileElements];
};

#endif  // HWY_TARGET != HWY_SCALAR
}  // namespace HWY_NAMESPACE
}  // namespace planewise
HWY_AFTER_NAMESPACE();

#endif  // PLANEWISE_CORE_QUANT_VECTOR_PLANE_WRITER_INL_H_
