#include "core/gemm/operand_tile.h"

#include <algorithm>
#include <type_traits>
#include <cstring>

#include "core/base/checked_math.h"
#include "core/gemm/expansion.h"
#include "core/gemm/tile_kernels.h"
#include "core/numeric/scale_e8m0.h"
#include "core/quant/visit_dtype.h"

namespace planewise {
namespace {

// A rectangle of the stored matrix.
struct StoredPart {
  int64_t first_row = 0;
  int64_t rows = 0;
  int64_t first_column = 0;
  int64_t columns = 0;
};

constexpr int16_t kNoShifts[kPanelRows] = {};

// How far ahead in the sum the stored matrix is fetched.
constexpr int64_t kFetchAhead = 2 * kSumStep;

float ToFloat(float value) { return value; }
float ToFloat(BFloat16 value) { return value.ToFloat(); }
float ToFloat(Float16 value) { return value.ToFloat(); }

float RoundTo(DType dtype, float value) {
  if (dtype == DType::kBF16) return BFloat16::FromFloat(value).ToFloat();
  if (dtype == DType::kF16) return Float16::FromFloat(value).ToFloat();
  return value;
}

void Put(float value, uint16_t& to) { to = BFloat16::FromFloat(value).bits; }
void Put(float value, float& to) { to = value; }

template <typename Out>
void ReadDense(const OperandSource& source, const StoredPart& part, Out* out, int64_t stride) {
  const MatrixView& matrix = source.data.dense;
  VisitHighPrecision(matrix.dtype, [&](auto tag) {
    using In = decltype(tag);
    const In* in = static_cast<const In*>(matrix.data) + part.first_row * matrix.columns +
                   part.first_column;
    const bool rounds = matrix.dtype != source.value_dtype && source.value_dtype != DType::kF32;
    for (int64_t row = 0; row < part.rows; ++row, in += matrix.columns, out += stride) {
      if constexpr (sizeof(In) == 2 && sizeof(Out) == 2) {
        if (matrix.dtype == DType::kBF16) {
          std::memcpy(out, in, static_cast<size_t>(part.columns) * sizeof(Out));
          continue;
        }
      }
      for (int64_t column = 0; column < part.columns; ++column) {
        const float value = ToFloat(in[column]);
        Put(rounds ? RoundTo(source.value_dtype, value) : value, out[column]);
      }
    }
  });
}

RowBlocks BlocksOf(const ConstPlaneSpan& plane, const StoredPart& part, const int16_t* shifts) {
  const PlaneLayout& layout = plane.layout;
  return {.element = layout.payload_dtype,
          .codes = plane.payload + part.first_row * layout.payload_columns + part.first_column,
          .code_stride = layout.payload_columns,
          .scales = plane.scales + part.first_row * layout.scale_columns +
                    part.first_column / kMxfp8Block,
          .scale_stride = layout.scale_columns,
          .shifts = shifts,
          .rows = part.rows,
          .columns = part.columns};
}

// Codes of a row plane, which for kCodes means: a shift for each stored row.
void ReadRowPlane(const OperandSource& source, const StoredPart& part, const int16_t* shifts,
                  uint16_t* out, int64_t stride) {
  ExpandRowBlocks(BlocksOf(source.data.plane, part, shifts), out, stride);
  for (int64_t row = 0; row < part.rows; ++row) {
    if (shifts[row] == kLeaveOut) std::fill_n(out + row * stride, part.columns, uint16_t{0});
  }
}

// Codes of a column plane: a shift for each stored column. At most 64 columns.
void ReadColumnPlane(const OperandSource& source, const StoredPart& part, const int16_t* shifts,
                     uint16_t* out, int64_t stride) {
  const ConstPlaneSpan& plane = source.data.plane;
  const PlaneLayout& layout = plane.layout;
  for (int64_t row = 0; row < part.rows; row += kMxfp8Block) {
    const int64_t stored_row = part.first_row + row;
    const ColumnBlocks blocks = {
        .element = layout.payload_dtype,
        .codes = plane.payload + stored_row * layout.payload_columns + part.first_column,
        .code_stride = layout.payload_columns,
        .scales = plane.scales + stored_row / kMxfp8Block * layout.scale_columns +
                  part.first_column,
        .shifts = shifts,
        .rows = std::min(kMxfp8Block, part.rows - row),
        .columns = part.columns};
    ExpandColumnBlocks(blocks, out + row * stride, stride);
  }
  for (int64_t column = 0; column < part.columns; ++column) {
    if (shifts[column] != kLeaveOut) continue;
    for (int64_t row = 0; row < part.rows; ++row) out[row * stride + column] = 0;
  }
}

// Values that BF16 or the value type cannot hold as they stand, one by one.
void ReadRoundedValues(const OperandSource& source, const StoredPart& part, float* out,
                       int64_t stride) {
  const RowBlocks blocks = BlocksOf(source.data.plane, part, nullptr);
  VisitFloat8(blocks.element, [&](auto tag) {
    using Code = decltype(tag);
    for (int64_t row = 0; row < part.rows; ++row) {
      const uint8_t* codes = blocks.codes + row * blocks.code_stride;
      const uint8_t* scales = blocks.scales + row * blocks.scale_stride;
      for (int64_t column = 0; column < part.columns; ++column) {
        const float scale = ScaleE8M0{scales[column / kMxfp8Block]}.ToFloat();
        out[row * stride + column] =
            RoundTo(source.value_dtype, Code{codes[column]}.ToFloat() * scale);
      }
    }
  });
}

void Read(const OperandSource& source, const StoredPart& part, const int16_t* shifts,
          uint16_t* out, int64_t stride) {
  switch (source.format.kind) {
    case OperandKind::kDense: return ReadDense(source, part, out, stride);
    case OperandKind::kValues: return ReadRowPlane(source, part, kNoShifts, out, stride);
    case OperandKind::kCodes:
      if (source.format.contracted == Contracted::kColumns) {
        return ReadRowPlane(source, part, shifts, out, stride);
      }
      return ReadColumnPlane(source, part, shifts, out, stride);
  }
}

// At most 64 x 64.
void Read(const OperandSource& source, const StoredPart& part, const int16_t* shifts, float* out,
          int64_t stride) {
  if (source.format.kind == OperandKind::kDense) return ReadDense(source, part, out, stride);
  if (source.format.kind == OperandKind::kValues &&
      !ValuesAreExact(source.data.exponents, source.format.dtype, source.value_dtype)) {
    return ReadRoundedValues(source, part, out, stride);
  }
  uint16_t narrow[kPanelRows * kTileColumns];
  Read(source, part, shifts, narrow, part.columns);
  for (int64_t row = 0; row < part.rows; ++row) {
    WidenRow(narrow + row * part.columns, part.columns, out + row * stride);
  }
}

// The block [outer rows, 32 of the sum] at `p` of a part, as it is stored: at
// most [64, 32] or [32, 64]. What the part does not fill is zero.
template <typename Element>
struct StoredBlock {
  Element elements[kPanelRows * kSumStep];
  int64_t stride;

  StoredBlock(const OperandSource& source, const OperandPart& part, int64_t p,
              const int16_t* shifts) {
    const int64_t count = std::min(kSumStep, part.p_count - p);
    if (count < kSumStep || part.row_count < kPanelRows) {
      std::fill_n(elements, kPanelRows * kSumStep, Element{});
    }
    if (source.format.contracted == Contracted::kColumns) {
      stride = kSumStep;
      Read(source, {part.first_row, part.row_count, part.first_p + p, count}, shifts, elements,
           stride);
    } else {
      stride = kPanelRows;
      Read(source, {part.first_p + p, count, part.first_row, part.row_count}, shifts, elements,
           stride);
    }
  }
};

void Transpose(const StoredBlock<uint16_t>& block, uint16_t* out, int64_t out_stride) {
  TransposeBlock(block.elements, block.stride, out, out_stride);
}

void Transpose(const StoredBlock<float>& block, float* out, int64_t out_stride) {
  for (int64_t p = 0; p < kSumStep; ++p) {
    for (int64_t row = 0; row < kPanelRows; ++row) {
      out[row * out_stride + p] = block.elements[p * block.stride + row];
    }
  }
}

// The bytes of the stored matrix, row by row.
struct StoredBytes {
  const std::byte* data;
  int64_t rows;
  int64_t row_bytes;
  int64_t element_bytes;

  explicit StoredBytes(const OperandSource& source) {
    if (source.format.kind == OperandKind::kDense) {
      const MatrixView& matrix = source.data.dense;
      data = static_cast<const std::byte*>(matrix.data);
      rows = matrix.rows;
      element_bytes = FactsOf(matrix.dtype).bits / 8;
      row_bytes = matrix.columns * element_bytes;
    } else {
      const ConstPlaneSpan& plane = source.data.plane;
      data = reinterpret_cast<const std::byte*>(plane.payload);
      rows = plane.layout.payload_rows;
      element_bytes = 1;
      row_bytes = plane.layout.payload_columns;
    }
  }

  // Asks for what there is of a part to be in the second-level cache soon: of
  // a part that runs down the stored rows, which processors do not foresee.
  void Fetch(const StoredPart& part) const {
    constexpr int64_t kLineBytes = 64;
    const int64_t begin = part.first_column * element_bytes;
    const int64_t end = std::min(begin + part.columns * element_bytes, row_bytes);
    const int64_t rows_end = std::min(part.first_row + part.rows, rows);
    for (int64_t row = part.first_row; row < rows_end; ++row) {
      for (int64_t byte = begin; byte < end; byte += kLineBytes) {
        __builtin_prefetch(data + row * row_bytes + byte, 0, 2);
      }
    }
  }
};

template <typename Element>
void PackPanelOf(const OperandSource& source, const OperandPart& part, const int16_t* shifts,
                 Element* out) {
  const StoredBytes stored(source);
  const int64_t stride = RoundUp(part.p_count, kSumStep);
  for (int64_t p = 0; p < part.p_count; p += kSumStep) {
    if (source.format.contracted == Contracted::kRows) {
      stored.Fetch({part.first_p + p + kFetchAhead, kSumStep, part.first_row, part.row_count});
    }
    const StoredBlock<Element> block(source, part, p, shifts);
    if (source.format.contracted == Contracted::kRows) {
      Transpose(block, out + p, stride);
      continue;
    }
    for (int64_t row = 0; row < kPanelRows; ++row) {
      std::copy_n(block.elements + row * block.stride, kSumStep, out + row * stride + p);
    }
  }
}

// A BF16 panel whose rows are stored as it holds them.
void CopyPanel(const OperandSource& source, const OperandPart& part, const int16_t* shifts,
               uint16_t* out) {
  const int64_t stride = RoundUp(part.p_count, kSumStep);
  Read(source, {part.first_row, part.row_count, part.first_p, part.p_count}, shifts, out, stride);
  for (int64_t row = 0; row < part.row_count && part.p_count < stride; ++row) {
    std::fill(out + row * stride + part.p_count, out + (row + 1) * stride, uint16_t{0});
  }
  std::fill(out + part.row_count * stride, out + kPanelRows * stride, uint16_t{0});
}

// One step of the sum, [p, p + 32), of a tile.
void PackTileStep(const OperandSource& source, const OperandPart& part, int64_t p,
                  const int16_t* shifts, uint16_t* out) {
  const StoredBlock<uint16_t> block(source, part, p, shifts);
  if (source.format.contracted == Contracted::kColumns) {
    TransposePairs(block.elements, block.stride, out);
  } else {
    InterleavePairs(block.elements, block.stride, out);
  }
}

void PackTileStep(const OperandSource& source, const OperandPart& part, int64_t p,
                  const int16_t* shifts, float* out) {
  const StoredBlock<float> block(source, part, p, shifts);
  if (source.format.contracted == Contracted::kRows) {
    std::copy_n(block.elements, kSumStep * kTileColumns, out);
    return;
  }
  for (int64_t row = 0; row < kTileColumns; ++row) {
    for (int64_t i = 0; i < kSumStep; ++i) {
      out[i * kTileColumns + row] = block.elements[row * block.stride + i];
    }
  }
}

// Steps [p, p + count) of a tile. Codes along the rows of a whole BF16 tile are
// moved as codes and expanded in place.
template <typename Element>
void PackTileSteps(const OperandSource& source, const OperandPart& tile, int64_t p, int64_t count,
                   const int16_t* shifts, Element* out) {
  if constexpr (std::is_same_v<Element, uint16_t>) {
    if (source.format.kind != OperandKind::kDense &&
        source.format.contracted == Contracted::kColumns && tile.row_count == kTileColumns &&
        count % kSumStep == 0) {
      const int16_t* used = source.format.kind == OperandKind::kCodes ? shifts : kNoShifts;
      return ExpandRowTile(
          BlocksOf(source.data.plane, {tile.first_row, kTileColumns, tile.first_p + p, count},
                   used),
          out);
    }
  }
  for (int64_t step = 0; step < count; step += kSumStep) {
    PackTileStep(source, tile, p + step, shifts, out + step * kTileColumns);
  }
}

// Tile by tile where the stored rows are the tile's, a cache line of codes a
// step; else step by step across all tiles, which lie beside one another.
template <typename Element>
void PackTilesOf(const OperandSource& source, const OperandPart& part, const int16_t* shifts,
                 Element* out) {
  const StoredBytes stored(source);
  const int64_t tile_elements = RoundUp(part.p_count, kSumStep) * kTileColumns;
  const auto pack = [&](int64_t tile, int64_t p, int64_t step) {
    const int64_t row = tile * kTileColumns;
    const OperandPart rows = {part.first_row + row, std::min(kTileColumns, part.row_count - row),
                              part.first_p, part.p_count};
    PackTileSteps(source, rows, p, std::min(step, part.p_count - p), shifts,
                  out + tile * tile_elements + p * kTileColumns);
    return rows;
  };
  const int64_t tiles = CeilDivide(part.row_count, kTileColumns);
  if (source.format.contracted == Contracted::kColumns) {
    constexpr int64_t kStep = 2 * kSumStep;
    for (int64_t tile = 0; tile < tiles; ++tile) {
      for (int64_t p = 0; p < part.p_count; p += kStep) pack(tile, p, kStep);
    }
    return;
  }
  for (int64_t p = 0; p < part.p_count; p += kSumStep) {
    for (int64_t tile = 0; tile < tiles; ++tile) {
      const OperandPart rows = pack(tile, p, kSumStep);
      stored.Fetch({part.first_p + p + kFetchAhead, kSumStep, rows.first_row, rows.row_count});
    }
  }
}

}  // namespace

void PackPanel(const OperandSource& source, const OperandPart& part, const int16_t* shifts,
               uint16_t* out) {
  if (source.format.contracted == Contracted::kColumns) {
    CopyPanel(source, part, shifts, out);
  } else {
    PackPanelOf(source, part, shifts, out);
  }
}

void PackPanel(const OperandSource& source, const OperandPart& part, const int16_t* shifts,
               float* out) {
  PackPanelOf(source, part, shifts, out);
}

void PackTiles(const OperandSource& source, const OperandPart& part, const int16_t* shifts,
               uint16_t* out) {
  PackTilesOf(source, part, shifts, out);
}

void PackTiles(const OperandSource& source, const OperandPart& part, const int16_t* shifts,
               float* out) {
  PackTilesOf(source, part, shifts, out);
}

}  // namespace planewise
