#ifndef PLANEWISE_CORE_GEMM_OPERAND_TILE_H_
#define PLANEWISE_CORE_GEMM_OPERAND_TILE_H_
// Copies parts of a stored operand into the order that oneDNN multiplies:
// panels of A, tiles of B, in BF16 or F32.
//
//   panel  [64, k]            64 rows of A, the sum along each row
//   tile   [k / 2, 64, 2]     64 rows of B in BF16, pairs along the sum together
//          [k, 64]            the same in F32
// k counts from a multiple of 32 and is filled up to one with zeros, as rows
// are up to 64.
//
// Not here: multiplying (panel_product.h), which shift a row gets
// (row_placement.h).

#include <cstdint>

#include "core/gemm/gemm_operand.h"
#include "core/gemm/gemm_problem.h"

namespace planewise {

inline constexpr int64_t kPanelRows = 64;
inline constexpr int64_t kTileColumns = 64;
inline constexpr int64_t kSumStep = 32;

// A shift that means: this row is multiplied elsewhere, put zeros.
inline constexpr int16_t kLeaveOut = INT16_MIN;

struct OperandSource {
  OperandFormat format;
  DType value_dtype = DType::kBF16;
  GemmOperand data;
};

// Rows [first_row, first_row + row_count) of the operand as the product sees it
// (columns of what is stored, for Contracted::kRows), sum range [first_p,
// first_p + p_count).
struct OperandPart {
  int64_t first_row = 0;
  int64_t row_count = 0;  // of a panel, 1 to 64
  int64_t first_p = 0;    // % 32 == 0
  int64_t p_count = 0;
};

// `shifts` holds 64 exponents that codes are shifted by, or kLeaveOut; other
// kinds ignore it. `out` is [64, up(p_count, 32)].
void PackPanel(const OperandSource& source, const OperandPart& part, const int16_t* shifts,
               uint16_t* out);
void PackPanel(const OperandSource& source, const OperandPart& part, const int16_t* shifts,
               float* out);

// As above, for any number of rows that share 64 shifts; `out` holds a tile for
// each 64 of them, one after another. Together they read memory in longer runs,
// and ahead of use.
void PackTiles(const OperandSource& source, const OperandPart& part, const int16_t* shifts,
               uint16_t* out);
void PackTiles(const OperandSource& source, const OperandPart& part, const int16_t* shifts,
               float* out);

}  // namespace planewise

#endif  // PLANEWISE_CORE_GEMM_OPERAND_TILE_H_
