#include "core/quant/quantize_request.h"

#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "core/numeric/float8_e4m3.h"
#include "core/numeric/float8_e5m2.h"
#include "core/quant/fp8_scale.h"
#include "core/quant/plane_padding.h"

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

absl::Status CheckRows(MatrixView matrix, RowRange rows) {
  const bool inside = rows.first >= 0 && rows.count >= 0 && rows.first <= matrix.rows &&
                      rows.count <= matrix.rows - rows.first;
  const bool whole_blocks = inside && rows.first % kPlaneRowAlignment == 0 &&
                            (rows.end() % kPlaneRowAlignment == 0 || rows.end() == matrix.rows);
  if (whole_blocks) return absl::OkStatus();
  return Error(Reason::kInvalidRequest,
               absl::StrCat("matrix ", Describe(matrix), ": ", rows.count, " rows from row ",
                            rows.first, "; parts begin and end at multiples of ",
                            kPlaneRowAlignment, " or at the last row"));
}

absl::Status CheckLayout(const PlaneLayout& layout, const QuantizeSpec& spec, PlaneKind kind,
                         MatrixView matrix) {
  PW_ASSIGN_OR_RETURN(PlaneLayout required, LayoutFor(spec, kind, {matrix.rows, matrix.columns}));
  if (layout == required) return absl::OkStatus();
  if (IsPerTensor(spec.format) && kind == PlaneKind::kColumn) {
    const PlaneOptions stored = {.amax_history_length = 1, .stores_per_tensor_column = true};
    PW_ASSIGN_OR_RETURN(PlaneLayout transpose,
                        PlaneLayoutFor(spec.format, spec.geometry, kind,
                                       {matrix.rows, matrix.columns}, DType::kBF16, stored));
    transpose.payload_dtype = spec.element;
    if (layout == transpose) return absl::OkStatus();
  }
  return Error(Reason::kShapeMismatch,
               absl::StrCat("matrix ", Describe(matrix), ": observed ", Describe(layout),
                            "; required ", Describe(required)));
}

// What the columns of a row plane must be a multiple of.
int64_t ColumnModulus(Format format) {
  if (format == Format::kMxfp8) return kMxfp8Block;
  if (format == Format::kNvfp4) return kNvfp4Block;
  return 1;
}

}  // namespace

absl::Status CheckMeasureAmax(MatrixView src, const QuantizeSpec& spec, RowRange rows) {
  PW_RETURN_IF_ERROR(CheckHighPrecision(src));
  PW_RETURN_IF_ERROR(CheckSpec(spec));
  return CheckRows(src, rows);
}

absl::Status CheckQuantize(MatrixView src, const QuantizeSpec& spec, RowRange rows,
                           const PlaneSpan* row, const PlaneSpan* column) {
  PW_RETURN_IF_ERROR(CheckHighPrecision(src));
  PW_RETURN_IF_ERROR(CheckSpec(spec));
  PW_RETURN_IF_ERROR(CheckRows(src, rows));
  if (row != nullptr) {
    PW_RETURN_IF_ERROR(CheckLayout(row->layout, spec, PlaneKind::kRow, src));
    const int64_t modulus = ColumnModulus(spec.format);
    if (src.columns % modulus != 0) {
      return Error(Reason::kShapeNotDivisible,
                   absl::StrCat("matrix ", Describe(src), ": ", src.columns, " columns % ", modulus,
                                " = ", src.columns % modulus, "; a row plane of ",
                                Name(spec.format), " requires a multiple of ", modulus));
    }
  }
  if (column != nullptr) {
    PW_RETURN_IF_ERROR(CheckLayout(column->layout, spec, PlaneKind::kColumn, src));
  }
  return absl::OkStatus();
}

absl::StatusOr<PlaneGeometry> CheckDequantize(const ConstPlaneSpan& plane, MatrixView dst,
                                              RowRange rows) {
  PW_RETURN_IF_ERROR(CheckHighPrecision(dst));
  PW_RETURN_IF_ERROR(CheckRows(dst, rows));
  return FindGeometry(plane.layout, {dst.rows, dst.columns});
}

float PerTensorScale(const QuantizeSpec& spec, const TensorAmax& amax) {
  if (spec.format == Format::kFp8Delayed) return spec.delayed_scale;
  const float element_max = spec.element == DType::kF8E5M2 ? Float8E5M2::kMax : Float8E4M3::kMax;
  return EncodeScale(amax.row, {.element_max = element_max,
                                .power_of_two = spec.power_of_two_scales,
                                .epsilon = spec.amax_epsilon});
}

void WriteOnce(const QuantizeSpec& spec, const TensorAmax& amax, RowRange rows,
               const PlaneSpan& plane) {
  const PlaneLayout& layout = plane.layout;
  const bool is_row = layout.kind == PlaneKind::kRow;
  if (rows.first == 0) {
    ZeroScalePadding(plane);
    if (spec.format == Format::kNvfp4) *plane.state = is_row ? amax.row : amax.column;
    if (IsPerTensor(spec.format) && is_row) {
      const float decode_scale = DecodeScale(PerTensorScale(spec, amax));
      std::memcpy(plane.scales, &decode_scale, sizeof(decode_scale));
    }
  }
  const int64_t last_row = is_row ? layout.payload_rows : layout.payload_columns;
  if (spec.format == Format::kNvfp4 && rows.end() == last_row) ZeroPayloadPadding(plane);
}

}  // namespace planewise
