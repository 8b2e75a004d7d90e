#ifndef PLANEWISE_CORE_GEMM_ROW_PLACEMENT_H_
#define PLANEWISE_CORE_GEMM_ROW_PLACEMENT_H_
// Which expansion each row of A's codes gets: decided from that row's own
// exponents and from B's, never from other rows.
//
// Not here: the rule (expansion.h).

#include <cstdint>
#include <optional>

#include "core/gemm/operand_tile.h"
#include "core/tensor/primary_weight.h"

namespace planewise {

struct RowPlacement {
  int16_t shift = 0;  // of A's codes; kLeaveOut for a row to multiply in wide_gemm.h
  int16_t undo = 0;   // the sum is multiplied by 2^undo
};

// The shift of B, the same for all its rows; 0 if B is too wide for any.
int16_t ShiftOfB(const GemmProblem& problem, std::optional<ExponentRange> b);

// The placements of rows [first_row, first_row + row_count), at most 64, of A's
// codes `a`. Looks at scales first and at codes only where those leave a doubt.
void PlaceRows(const GemmProblem& problem, const ConstPlaneSpan& a,
               std::optional<ExponentRange> b, int64_t first_row, int64_t row_count,
               RowPlacement* placements);

}  // namespace planewise

#endif  // PLANEWISE_CORE_GEMM_ROW_PLACEMENT_H_
