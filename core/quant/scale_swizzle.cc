#include "core/quant/scale_swizzle.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "core/quant/plane_padding.h"
#include "core/quant/quantizer.h"

namespace planewise {
namespace {

// Inner scales that lie together in a tile.
constexpr int64_t kRun = 4;

bool HasSwizzledOrder(const PlaneLayout& layout) {
  return layout.kind != PlaneKind::kHighPrecision &&
         (layout.scale_dtype == DType::kF8E8M0 || layout.scale_dtype == DType::kF8E4M3);
}

absl::Status CheckOrder(const PlaneLayout& layout) {
  if (HasSwizzledOrder(layout)) return absl::OkStatus();
  return Error(Reason::kInvalidRequest,
               absl::StrCat("a ", Name(layout.kind), " plane with ", Name(layout.scale_dtype),
                            " scales has no swizzled scales; required F8_E8M0 or F8_E4M3"));
}

// The column plane of MXFP8 is not stored transposed: its scale rows are blocks.
bool ScaleRowsAreInner(const PlaneLayout& layout) {
  return layout.scale_dtype == DType::kF8E8M0 && layout.kind == PlaneKind::kColumn;
}

// Calls move(index in the compact scales, index in the swizzled ones, count) for runs
// of scales that lie together in both.
template <typename Move>
void ForEachRun(const PlaneLayout& layout, Move move) {
  if (ScaleRowsAreInner(layout)) {
    const int64_t inner_tiles = CeilDivide(layout.scale_rows, kRun);
    for (int64_t inner = 0; inner < layout.used_scale_rows; ++inner) {
      for (int64_t outer = 0; outer < layout.used_scale_columns; ++outer) {
        move(inner * layout.scale_columns + outer, SwizzledScaleIndex(outer, inner, inner_tiles),
             1);
      }
    }
    return;
  }
  const int64_t inner_tiles = CeilDivide(layout.scale_columns, kRun);
  const int64_t whole_runs = layout.used_scale_columns / kRun * kRun;
  for (int64_t outer = 0; outer < layout.used_scale_rows; ++outer) {
    const int64_t row = outer * layout.scale_columns;
    for (int64_t inner = 0; inner < whole_runs; inner += kRun) {
      // A count that the compiler knows makes a copy one instruction.
      move(row + inner, SwizzledScaleIndex(outer, inner, inner_tiles), kRun);
    }
    const int64_t rest = layout.used_scale_columns - whole_runs;
    if (rest > 0) move(row + whole_runs, SwizzledScaleIndex(outer, whole_runs, inner_tiles), rest);
  }
}

}  // namespace

int64_t SwizzledScaleBytes(const PlaneLayout& layout) {
  return HasSwizzledOrder(layout) ? layout.scale_bytes : 0;
}

absl::Status SwizzleScales(const PlaneLayout& layout, const uint8_t* compact, uint8_t* swizzled) {
  PW_RETURN_IF_ERROR(CheckOrder(layout));
  if (layout.used_scale_rows * layout.used_scale_columns != layout.scale_bytes) {
    std::fill_n(swizzled, layout.scale_bytes, uint8_t{0});
  }
  ForEachRun(layout, [&](int64_t from, int64_t to, int64_t count) {
    std::memcpy(swizzled + to, compact + from, static_cast<size_t>(count));
  });
  return absl::OkStatus();
}

absl::Status UnswizzleScales(const PlaneLayout& layout, const uint8_t* swizzled, uint8_t* compact) {
  PW_RETURN_IF_ERROR(CheckOrder(layout));
  PlaneSpan scales;
  scales.layout = layout;
  scales.scales = compact;
  ZeroScalePadding(scales);
  ForEachRun(layout, [&](int64_t to, int64_t from, int64_t count) {
    std::memcpy(compact + to, swizzled + from, static_cast<size_t>(count));
  });
  return absl::OkStatus();
}

}  // namespace planewise
