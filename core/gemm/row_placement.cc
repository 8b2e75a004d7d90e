#include "core/gemm/row_placement.h"

#include <algorithm>

#include "core/base/checked_math.h"
#include "core/gemm/expansion.h"

namespace planewise {
namespace {

Expansion Choose(const GemmProblem& problem, std::optional<ExponentRange> a,
                 std::optional<ExponentRange> b) {
  return ChooseExpansion(a, problem.a.dtype, b, problem.b.dtype, problem.k);
}

// A row of the product's A, as blocks of 32 along the sum.
class CodeRow {
 public:
  CodeRow(const GemmProblem& problem, const ConstPlaneSpan& plane, int64_t row)
      : blocks_(CeilDivide(problem.k, kMxfp8Block)), k_(problem.k) {
    const PlaneLayout& layout = plane.layout;
    if (problem.a.contracted == Contracted::kColumns) {
      scales_ = plane.scales + row * layout.scale_columns;
      codes_ = plane.payload + row * layout.payload_columns;
      scale_stride_ = code_stride_ = 1;
    } else {
      scales_ = plane.scales + row;
      codes_ = plane.payload + row;
      scale_stride_ = layout.scale_columns;
      code_stride_ = layout.payload_columns;
    }
  }

  // Over all blocks, blocks of zeros too: no narrower than the true range.
  ExponentRange OuterRange() const {
    ExponentRange range{255, 0};
    for (int64_t block = 0; block < blocks_; ++block) Include(block, range);
    return range;
  }

  // Over the blocks that hold a non-zero code.
  std::optional<ExponentRange> Range() const {
    ExponentRange range{255, 0};
    bool any = false;
    for (int64_t block = 0; block < blocks_; ++block) {
      if (!HoldsNonZero(block)) continue;
      Include(block, range);
      any = true;
    }
    return any ? std::optional<ExponentRange>(range) : std::nullopt;
  }

 private:
  void Include(int64_t block, ExponentRange& range) const {
    const int scale = scales_[block * scale_stride_];
    range.min = std::min(range.min, scale);
    range.max = std::max(range.max, scale);
  }

  bool HoldsNonZero(int64_t block) const {
    const int64_t end = std::min((block + 1) * kMxfp8Block, k_);
    for (int64_t p = block * kMxfp8Block; p < end; ++p) {
      if ((codes_[p * code_stride_] & 0x7F) != 0) return true;
    }
    return false;
  }

  const uint8_t* scales_;
  const uint8_t* codes_;
  int64_t scale_stride_;
  int64_t code_stride_;
  int64_t blocks_;
  int64_t k_;
};

}  // namespace

int16_t ShiftOfB(const GemmProblem& problem, std::optional<ExponentRange> b) {
  return static_cast<int16_t>(Choose(problem, std::nullopt, b).shift_b);
}

void PlaceRows(const GemmProblem& problem, const ConstPlaneSpan& a,
               std::optional<ExponentRange> b, int64_t first_row, int64_t row_count,
               RowPlacement* placements) {
  if (problem.k == 0) {  // No codes, and no bytes to look at.
    std::fill_n(placements, row_count, RowPlacement{});
    return;
  }
  for (int64_t i = 0; i < row_count; ++i) {
    const CodeRow row(problem, a, first_row + i);
    Expansion expansion = Choose(problem, row.OuterRange(), b);
    if (expansion.kind != ExpansionKind::kPlain) expansion = Choose(problem, row.Range(), b);
    if (expansion.kind == ExpansionKind::kWide) {
      placements[i] = {kLeaveOut, 0};
    } else {
      placements[i] = {static_cast<int16_t>(expansion.shift_a),
                       static_cast<int16_t>(-expansion.shift_a - expansion.shift_b)};
    }
  }
}

}  // namespace planewise
