#include "core/quant/quantize_request.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"

namespace planewise {
namespace {

std::string Describe(MatrixView matrix) {
  return absl::StrCat(Name(matrix.dtype), " [", matrix.rows, ", ", matrix.columns, "]");
}

std::string Describe(const PlaneLayout& layout) {
  return absl::StrCat(Name(layout.kind), " plane ", Name(layout.payload_dtype), " [",
                      layout.payload_rows, ", ", layout.payload_columns, "] with scales [",
                      layout.scale_rows, ", ", layout.scale_columns, "]");
}

absl::Status CheckHighPrecision(MatrixView matrix) {
  if (IsHighPrecision(matrix.dtype)) return absl::OkStatus();
  return Error(Reason::kDtypeUnsupported,
               absl::StrCat("matrix ", Describe(matrix), "; required F32, BF16 or F16"));
}

absl::Status CheckLayout(const PlaneLayout& layout, PlaneKind kind, MatrixView matrix,
                         DType element) {
  PW_ASSIGN_OR_RETURN(const PlaneLayout required,
                      Mxfp8LayoutFor(kind, {matrix.rows, matrix.columns}, element));
  if (layout == required) return absl::OkStatus();
  return Error(Reason::kShapeMismatch,
               absl::StrCat("matrix ", Describe(matrix), ": observed ", Describe(layout),
                            "; required ", Describe(required)));
}

}  // namespace

absl::Status CheckQuantizeMxfp8(MatrixView src, DType element, const PlaneSpan* row,
                                const PlaneSpan* column) {
  PW_RETURN_IF_ERROR(CheckHighPrecision(src));
  if (row != nullptr) {
    PW_RETURN_IF_ERROR(CheckLayout(row->layout, PlaneKind::kRow, src, element));
    if (src.columns % kMxfp8Block != 0) {
      return Error(Reason::kShapeNotDivisible,
                   absl::StrCat("matrix ", Describe(src), ": ", src.columns, " columns % ",
                                kMxfp8Block, " = ", src.columns % kMxfp8Block,
                                "; a row plane of MXFP8 requires a multiple of ", kMxfp8Block));
    }
  }
  if (column != nullptr) {
    PW_RETURN_IF_ERROR(CheckLayout(column->layout, PlaneKind::kColumn, src, element));
  }
  return absl::OkStatus();
}

absl::Status CheckDequantizeMxfp8(const ConstPlaneSpan& plane, DType element, MatrixView dst) {
  PW_RETURN_IF_ERROR(CheckHighPrecision(dst));
  return CheckLayout(plane.layout, plane.layout.kind, dst, element);
}

void ZeroScalePadding(const PlaneSpan& plane) {
  const PlaneLayout& layout = plane.layout;
  if (layout.scale_bytes == 0) return;  // no matrix, and perhaps no buffer
  const int64_t padding_columns = layout.scale_columns - layout.used_scale_columns;
  uint8_t* scales = plane.scales;
  for (int64_t row = 0; row < layout.used_scale_rows; ++row, scales += layout.scale_columns) {
    std::fill_n(scales + layout.used_scale_columns, padding_columns, uint8_t{0});
  }
  const int64_t padding_rows = layout.scale_rows - layout.used_scale_rows;
  std::fill_n(scales, padding_rows * layout.scale_columns, uint8_t{0});
}

}  // namespace planewise
