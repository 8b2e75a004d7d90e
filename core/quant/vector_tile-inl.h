// Tiles: the part of a matrix that is worked on at a time. What a tile's elements and
// codes take stays in the nearest caches, and its rows and columns of codes are whole
// cache lines. Compiled for each instruction set as part of the files that include it.
//
// Not here: what becomes of the elements (vector_quantize-inl.h).

// Highway's guard: included once for each target.
#if defined(PLANEWISE_CORE_QUANT_VECTOR_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLANEWISE_CORE_QUANT_VECTOR_TILE_INL_H_
#undef PLANEWISE_CORE_QUANT_VECTOR_TILE_INL_H_
#else
#define PLANEWISE_CORE_QUANT_VECTOR_TILE_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/base/checked_math.h"
#include "core/quant/quantizer.h"
#include "core/tensor/plane_layout.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace planewise {
namespace HWY_NAMESPACE {
#if HWY_TARGET != HWY_SCALAR

namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kCacheLineBytes = 64;

// Blocks of every format, and parts of rows, begin and end where tiles do.
constexpr int64_t kTileRows = kPlaneRowAlignment;
constexpr int64_t kTileColumns = 128;
constexpr int64_t kTileElements = kTileRows * kTileColumns;
static_assert(kTileRows % kFp8Block == 0 && kTileColumns % kFp8Block == 0);
static_assert(kFp8Block % kMxfp8Block == 0 && kMxfp8Block % kNvfp4Block == 0);

// Blocks that a tile can have.
constexpr int64_t kTileBlocksMax = kTileElements / kNvfp4Block;

// Rows [row, row + rows) and columns [column, column + columns) of a matrix.
struct Tile {
  int64_t row = 0;
  int64_t column = 0;
  int64_t rows = 0;
  int64_t columns = 0;
};

// The tiles of a part of the rows, row after row of them.
class Tiles {
 public:
  Tiles(RowRange rows, int64_t columns) : rows_(rows), columns_(columns) {}

  // Calls function(tile, next): the one after the last has no rows.
  template <typename Function>
  void ForEach(Function function) const {
    if (columns_ == 0) return;
    for (Tile tile = At(rows_.first, 0), next; tile.rows > 0; tile = next) {
      next = tile.column + kTileColumns < columns_ ? At(tile.row, tile.column + kTileColumns)
                                                   : At(tile.row + kTileRows, 0);
      function(tile, next);
    }
  }

 private:
  Tile At(int64_t row, int64_t column) const {
    return {row, column, std::clamp(rows_.end() - row, int64_t{0}, kTileRows),
            std::min(kTileColumns, columns_ - column)};
  }

  RowRange rows_;
  int64_t columns_;
};

// Rows of memory that will be read soon. Fetching them while the processor computes
// costs little; machines do not see by themselves what comes after a tile's end.
struct Upcoming {
  const uint8_t* first = nullptr;
  int64_t stride_bytes = 0;
  int64_t rows = 0;
  int64_t row_bytes = 0;

  // Into the second-level cache: the first has no room for it yet. Inlined, since gcc
  // takes a function that only prefetches for one without effect.
  HWY_INLINE void FetchRow(int64_t row) const {
    constexpr int kReading = 0;
    constexpr int kSecondLevel = 2;
    if (row >= rows) return;
    for (int64_t i = 0; i < row_bytes; i += kCacheLineBytes) {
      __builtin_prefetch(first + row * stride_bytes + i, kReading, kSecondLevel);
    }
  }
};

// The elements of a tile, zeros included that make up whole blocks: they change no
// largest magnitude, and what becomes of them is not stored.
template <typename HighPrecision>
class TileElements {
 public:
  // Refers to the matrix if the tile is whole multiples, else copies it.
  void Load(const MatrixView& matrix, const Tile& tile, int64_t row_multiple,
            int64_t column_multiple) {
    const HighPrecision* source = At(matrix, tile);
    rows_ = RoundUp(tile.rows, row_multiple);
    columns_ = RoundUp(tile.columns, column_multiple);
    first_ = source;
    stride_ = matrix.columns;
    if (rows_ == tile.rows && columns_ == tile.columns) return;
    first_ = padded_;
    stride_ = kTileColumns;
    std::fill_n(padded_, rows_ * kTileColumns, HighPrecision{});
    for (int64_t i = 0; i < tile.rows; ++i) {
      std::copy_n(source + i * matrix.columns, tile.columns, padded_ + i * kTileColumns);
    }
  }

  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  int64_t stride() const { return stride_; }
  const HighPrecision* Row(int64_t row) const { return first_ + row * stride_; }

  // What Load will read of `tile`.
  static Upcoming UpcomingOf(const MatrixView& matrix, const Tile& tile) {
    if (tile.rows == 0) return {};
    constexpr int64_t kBytes = sizeof(HighPrecision);
    return {reinterpret_cast<const uint8_t*>(At(matrix, tile)), matrix.columns * kBytes, tile.rows,
            tile.columns * kBytes};
  }

 private:
  static const HighPrecision* At(const MatrixView& matrix, const Tile& tile) {
    return static_cast<const HighPrecision*>(matrix.data) + tile.row * matrix.columns + tile.column;
  }

  const HighPrecision* first_ = nullptr;
  int64_t stride_ = 0;
  int64_t rows_ = 0;
  int64_t columns_ = 0;
  alignas(kCacheLineBytes) HighPrecision padded_[kTileElements];
};

// Writes the bytes of an array of `array_bytes`: past the caches if it does not fit
// into them. To fetch lines first that are written whole would be half of the work.
class ByteWriter {
 public:
  explicit ByteWriter(int64_t array_bytes) : past_caches_(array_bytes >= kCachedBytesMax) {}
  ~ByteWriter() {
    if (past_caches_) hwy::FlushStream();
  }
  ByteWriter(const ByteWriter&) = delete;
  ByteWriter& operator=(const ByteWriter&) = delete;

  // `from` is aligned to cache lines.
  void Write(const void* from, int64_t bytes, void* to) const {
    const auto first = static_cast<int64_t>(reinterpret_cast<uintptr_t>(to) % kCacheLineBytes);
    if (!past_caches_ || first != 0 || bytes % kCacheLineBytes != 0) {
      std::memcpy(to, from, static_cast<size_t>(bytes));
      return;
    }
    const hn::CappedTag<uint8_t, kCacheLineBytes> d;
    const auto* source = static_cast<const uint8_t*>(from);
    auto* target = static_cast<uint8_t*>(to);
    for (int64_t i = 0; i < bytes; i += static_cast<int64_t>(hn::Lanes(d))) {
      hn::Stream(hn::Load(d, source + i), d, target + i);
    }
  }

 private:
  // What a second-level cache keeps for whoever reads it next.
  static constexpr int64_t kCachedBytesMax = int64_t{2} << 20;

  bool past_caches_;
};

#endif  // HWY_TARGET != HWY_SCALAR
}  // namespace HWY_NAMESPACE
}  // namespace planewise
HWY_AFTER_NAMESPACE();

#endif  // PLANEWISE_CORE_QUANT_VECTOR_TILE_INL_H_
