#include "core/quant/plane_derivation.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "core/quant/code_transpose.h"
#include "core/quant/plane_geometry.h"
#include "core/quant/plane_padding.h"
#include "core/quant/quantize_request.h"
#include "core/recipe/recipe_check.h"

namespace planewise {
namespace {

// A plane as the other one, or a request that misuses it, sees it.
PlaneSpan LayoutOnly(const PlaneLayout& layout) {
  PlaneSpan span;
  span.layout = layout;
  return span;
}

// A quantizer that made both planes would have had to take this request.
absl::Status CheckLayouts(Format format, BlockGeometry geometry, const PlaneLayout& from,
                          RowRange rows, const PlaneLayout& to) {
  if (from.kind == to.kind) {
    return Error(Reason::kInvalidRequest,
                 absl::StrCat("a ", Name(to.kind), " plane is not derived from another one"));
  }
  const bool makes_column = to.kind == PlaneKind::kColumn;
  const PlaneLayout& row = makes_column ? from : to;
  const PlaneLayout& column = makes_column ? to : from;
  QuantizeSpec spec;
  spec.format = format;
  spec.geometry = geometry;
  spec.element = from.payload_dtype;
  spec.amax_history_length = std::max<int64_t>(row.state_elements() - 1, 0);
  const MatrixView matrix = {nullptr, DType::kBF16, row.payload_rows, row.payload_columns};
  const PlaneSpan row_span = LayoutOnly(row);
  const PlaneSpan column_span = LayoutOnly(column);
  return CheckQuantize(matrix, spec, rows, &row_span, &column_span);
}

// Bytes before row `i` of the matrix, or before column `i` of a transposed payload.
int64_t PayloadOffset(const PlaneLayout& layout, bool transposed, int64_t i) {
  if (!transposed) return i * layout.payload_row_bytes();
  return layout.payload_dtype == DType::kF4E2M1 ? i / 2 : i;  // i is a multiple of 128
}

void DerivePayload(const PlaneGeometry& from_geometry, const ConstPlaneSpan& from, RowRange rows,
                   const PlaneGeometry& to_geometry, const PlaneSpan& to) {
  const bool from_transposed = from_geometry.payload_transposed;
  const int64_t from_row_bytes = from.layout.payload_row_bytes();
  const uint8_t* source = from.payload + PayloadOffset(from.layout, from_transposed, rows.first);
  uint8_t* target =
      to.payload + PayloadOffset(to.layout, to_geometry.payload_transposed, rows.first);
  if (from_transposed == to_geometry.payload_transposed) {
    // The row plane's own bytes, if the payload is shared.
    if (source != target) std::copy_n(source, rows.count * from_row_bytes, target);
    return;
  }
  const int64_t source_rows = from_transposed ? from_geometry.columns : rows.count;
  const int64_t source_columns = from_transposed ? rows.count : from_geometry.columns;
  const CodeRows codes = {source, from_row_bytes};
  const MutableCodeRows transposed = {target, to.layout.payload_row_bytes()};
  if (from.layout.payload_dtype == DType::kF4E2M1) {
    TransposePacked(codes, source_rows, source_columns, transposed);
  } else {
    TransposeBytes(codes, source_rows, source_columns, transposed);
  }
}

// Stored scales of a plane of square blocks, line by line: how often the scale of
// one block is repeated, and which part of the lines belongs to rows of the matrix.
struct ScaleLines {
  int64_t lines_per_block;
  int64_t entries_per_block;
  int64_t first_line;
  int64_t end_line;
  int64_t first_entry;
  int64_t end_entry;
};

ScaleLines LinesOf(const PlaneGeometry& plane, RowRange rows, const PlaneLayout& layout) {
  const int64_t scales_per_row_step = plane.block_rows >> plane.scale_rows_log2;
  const int64_t scales_per_column_step = plane.block_columns >> plane.scale_columns_log2;
  const int64_t first = rows.first >> plane.scale_rows_log2;
  const int64_t end = CeilDivide(rows.end(), int64_t{1} << plane.scale_rows_log2);
  if (plane.scales_transposed) {
    return {scales_per_column_step, scales_per_row_step, 0, layout.used_scale_rows, first, end};
  }
  return {scales_per_row_step, scales_per_column_step, first, end, 0, layout.used_scale_columns};
}

// Each block's scale from where the other plane has it to wherever this one has it.
template <typename Scale>
void DeriveScales(const PlaneGeometry& from_geometry, const ConstPlaneSpan& from, RowRange rows,
                  const PlaneGeometry& to_geometry, const PlaneSpan& to) {
  const ScaleLines lines = LinesOf(to_geometry, rows, to.layout);
  const int64_t line_bytes = to.layout.scale_columns * int64_t{sizeof(Scale)};
  const int64_t first_byte = lines.first_entry * int64_t{sizeof(Scale)};
  const int64_t used_bytes = (lines.end_entry - lines.first_entry) * int64_t{sizeof(Scale)};
  for (int64_t line = lines.first_line; line < lines.end_line; ++line) {
    uint8_t* const scales = to.scales + line * line_bytes;
    if (line % lines.lines_per_block != 0) {  // as the line before
      std::copy_n(scales - line_bytes + first_byte, used_bytes, scales + first_byte);
      continue;
    }
    for (int64_t entry = lines.first_entry; entry < lines.end_entry;
         entry += lines.entries_per_block) {
      const int64_t scale_row = to_geometry.scales_transposed ? entry : line;
      const int64_t scale_column = to_geometry.scales_transposed ? line : entry;
      const int64_t index = from_geometry.ScaleIndex(
          scale_row << to_geometry.scale_rows_log2, scale_column << to_geometry.scale_columns_log2);
      Scale scale;
      std::memcpy(&scale, from.scales + index * int64_t{sizeof(Scale)}, sizeof(Scale));
      const int64_t end = std::min(entry + lines.entries_per_block, lines.end_entry);
      for (int64_t copy = entry; copy < end; ++copy) {
        std::memcpy(scales + copy * int64_t{sizeof(Scale)}, &scale, sizeof(Scale));
      }
    }
  }
}

// What a plane has once.
void DeriveOnce(Format format, const ConstPlaneSpan& from, const PlaneSpan& to) {
  ZeroScalePadding(to);
  if (format == Format::kNvfp4) *to.state = *from.state;
  if (IsPerTensor(format) && to.layout.Stores(PlanePart::kScales)) {
    std::copy_n(from.scales, to.layout.scale_bytes, to.scales);
  }
}

}  // namespace

absl::Status CheckDerivable(Format format, BlockGeometry geometry, PlaneKind kind) {
  if (format == Format::kNone || kind == PlaneKind::kHighPrecision) {
    return Error(Reason::kInvalidRequest,
                 absl::StrCat("a matrix of format ", Name(format), " has no ", Name(kind),
                              " plane that another one could give"));
  }
  if (ColumnDerivableFromRow(format, geometry)) return absl::OkStatus();
  const bool is_column = kind == PlaneKind::kColumn;
  return Error(is_column ? Reason::kColumnwiseMissing : Reason::kNeedsMaster,
               absl::StrCat("the ", Name(kind), " plane of ", Name(format), " with ",
                            Name(geometry), " blocks cannot be made from the ",
                            Name(is_column ? PlaneKind::kRow : PlaneKind::kColumn),
                            " plane: their blocks differ; it needs the master weight"));
}

absl::Status DerivePlane(Format format, BlockGeometry geometry, const ConstPlaneSpan& from,
                         RowRange rows, const PlaneSpan& to) {
  PW_RETURN_IF_ERROR(CheckDerivable(format, geometry, to.layout.kind));
  PW_RETURN_IF_ERROR(CheckLayouts(format, geometry, from.layout, rows, to.layout));
  const PlaneGeometry from_geometry = GeometryOf(format, geometry, from.layout);
  const PlaneGeometry to_geometry = GeometryOf(format, geometry, to.layout);
  if (to.layout.Stores(PlanePart::kPayload) && rows.count > 0) {
    DerivePayload(from_geometry, from, rows, to_geometry, to);
  }
  if (!IsPerTensor(format)) {
    if (to.layout.scale_dtype == DType::kF32) {
      DeriveScales<float>(from_geometry, from, rows, to_geometry, to);
    } else {
      DeriveScales<uint8_t>(from_geometry, from, rows, to_geometry, to);
    }
  }
  if (rows.first == 0) DeriveOnce(format, from, to);
  return absl::OkStatus();
}

}  // namespace planewise
