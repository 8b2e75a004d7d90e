#ifndef PLANEWISE_CORE_GEMM_TILE_KERNELS_H_
#define PLANEWISE_CORE_GEMM_TILE_KERNELS_H_
// The vectorised inner loops of packing and storing tiles: codes to BF16,
// transposition of small blocks, F32 sums to results. Highway, dispatched at
// run time; every target gives the same bits.
//
// Not here: which block goes where (operand_tile.h).

#include <cstdint>

#include "core/numeric/dtype.h"

namespace planewise {

// Rows of MXFP8 codes, blocks of 32 along each row, times 2^shift.
struct RowBlocks {
  DType element = DType::kF8E4M3;
  const uint8_t* codes = nullptr;   // [rows, columns], code_stride apart
  int64_t code_stride = 0;
  const uint8_t* scales = nullptr;  // [rows, columns / 32], scale_stride apart
  int64_t scale_stride = 0;
  const int16_t* shifts = nullptr;  // one a row
  int64_t rows = 0;
  int64_t columns = 0;              // % 32 == 0
};

// out [rows, columns] = BF16 of code * 2^(scale - 127 + shift), which must be
// normal (expansion.h). Zeros keep their sign; NaN codes and codes under the
// scale 255 become NaN.
void ExpandRowBlocks(const RowBlocks& blocks, uint16_t* out, int64_t out_stride);

// As ExpandRowBlocks, then TransposePairs: 64 rows of 32 or 64 columns,
// out [columns / 2, 64, 2]. Moves codes, not what they become.
void ExpandRowTile(const RowBlocks& blocks, uint16_t* out);

// One 32-row block, or a last shorter one, of a column plane: a scale a column.
struct ColumnBlocks {
  DType element = DType::kF8E4M3;
  const uint8_t* codes = nullptr;   // [rows, columns], code_stride apart
  int64_t code_stride = 0;
  const uint8_t* scales = nullptr;  // [columns]
  const int16_t* shifts = nullptr;  // one a column
  int64_t rows = 0;                 // <= 32
  int64_t columns = 0;              // % 32 == 0, <= kMaxColumns

  static constexpr int64_t kMaxColumns = 64;
};

void ExpandColumnBlocks(const ColumnBlocks& blocks, uint16_t* out, int64_t out_stride);

// BF16 blocks in the orders that packing needs.
// in [32, 64], rows in_stride apart -> out [64, 32], rows out_stride apart.
void TransposeBlock(const uint16_t* in, int64_t in_stride, uint16_t* out, int64_t out_stride);
// in [64, 32] -> out [16, 64, 2]: pairs along the columns of in stay together.
void TransposePairs(const uint16_t* in, int64_t in_stride, uint16_t* out);
// in [32, 64] -> out [16, 64, 2]: pairs along the rows of in come together.
void InterleavePairs(const uint16_t* in, int64_t in_stride, uint16_t* out);

// Sums on their way to a result.
struct RowSums {
  const float* sums = nullptr;  // [rows, columns], sum_stride apart
  int64_t sum_stride = 0;
  const float* bias = nullptr;  // [columns], or nullptr
  int64_t rows = 0;
  int64_t columns = 0;
};

// out[i, j] = sums[i, j] + bias[j], rounded to `dtype` (F32, BF16, F16). Rows of
// out are out_stride_bytes apart and need not be aligned. `past_caches` writes
// F32 where it can without reading what was there, for results that no cache
// holds until they are read: hwy::FlushStream() before another thread reads.
void StoreRows(const RowSums& sums, DType dtype, void* out, int64_t out_stride_bytes,
               bool past_caches);

// out[i] = the F32 that BF16 in[i] is.
void WidenRow(const uint16_t* in, int64_t count, float* out);

}  // namespace planewise

#endif  // PLANEWISE_CORE_GEMM_TILE_KERNELS_H_
