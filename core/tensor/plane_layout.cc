#include "core/tensor/plane_layout.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"

namespace planewise {
namespace {

// cuBLASLt reads block scales in tiles of 128 along the outer dimension by 4
// along the quantized one, so stored scales are padded to whole tiles.
constexpr int64_t kScaleTileOuter = 128;
constexpr int64_t kScaleTileInner = 4;

// The FP32 scales of block FP8 are read in vectors of four.
constexpr int64_t kFp32ScaleAlignment = 4;

void SetScales(DType dtype, int64_t used_rows, int64_t used_columns, int64_t row_alignment,
               int64_t column_alignment, PlaneLayout& layout) {
  layout.scale_dtype = dtype;
  layout.used_scale_rows = used_rows;
  layout.used_scale_columns = used_columns;
  layout.scale_rows = RoundUp(used_rows, row_alignment);
  layout.scale_columns = RoundUp(used_columns, column_alignment);
}

void Transpose(PlaneLayout& layout) { std::swap(layout.payload_rows, layout.payload_columns); }

void DescribeMxfp8(BlockGeometry geometry, MatrixShape shape, PlaneLayout& layout) {
  layout.payload_dtype = DType::kF8E4M3;
  if (layout.kind == PlaneKind::kRow) {
    SetScales(DType::kF8E8M0, shape.out, CeilDivide(shape.in, kMxfp8Block), kScaleTileOuter,
              kScaleTileInner, layout);
    return;
  }
  layout.shares_row_payload = geometry == BlockGeometry::k2D;
  SetScales(DType::kF8E8M0, CeilDivide(shape.out, kMxfp8Block), shape.in, kScaleTileInner,
            kScaleTileOuter, layout);
}

void DescribeNvfp4(PlaneLayout& layout) {
  layout.payload_dtype = DType::kF4E2M1;
  if (layout.kind == PlaneKind::kColumn) Transpose(layout);
  // One amax a plane.
  layout.state_bytes = sizeof(float);
  SetScales(DType::kF8E4M3, layout.payload_rows, CeilDivide(layout.payload_columns, kNvfp4Block),
            kScaleTileOuter, kScaleTileInner, layout);
}

void DescribeFp8Block(BlockGeometry geometry, PlaneLayout& layout) {
  layout.payload_dtype = DType::kF8E4M3;
  if (layout.kind == PlaneKind::kColumn) Transpose(layout);
  const int64_t blocks = CeilDivide(layout.payload_columns, kFp8Block);
  if (geometry == BlockGeometry::k2D) {
    SetScales(DType::kF32, CeilDivide(layout.payload_rows, kFp8Block), blocks, 1,
              kFp32ScaleAlignment, layout);
  } else {
    // Block by block, as cuBLASLt reads them: the transpose of the payload's order.
    SetScales(DType::kF32, blocks, layout.payload_rows, 1, kFp32ScaleAlignment, layout);
  }
}

absl::Status DescribePerTensor(Format format, const PlaneOptions& options, PlaneLayout& layout) {
  layout.payload_dtype = DType::kF8E4M3;
  if (layout.kind == PlaneKind::kColumn) {
    layout.shares_row_payload = !options.stores_per_tensor_column;
    layout.shares_row_scales = true;
    if (options.stores_per_tensor_column) Transpose(layout);
    return absl::OkStatus();
  }
  SetScales(DType::kF32, 1, 1, 1, 1, layout);
  if (format == Format::kFp8Delayed) {
    if (options.amax_history_length < 1 || options.amax_history_length > kAmaxHistoryLengthMax) {
      return Error(
          Reason::kInvalidRequest,
          absl::StrCat("a plane of fp8_delayed has a history of ", options.amax_history_length,
                       " amaxes; it needs 1 to ", kAmaxHistoryLengthMax));
    }
    layout.state_bytes = (1 + options.amax_history_length) * int64_t{sizeof(float)};
  }
  return absl::OkStatus();
}

absl::Status Describe(Format format, BlockGeometry geometry, MatrixShape shape,
                      const PlaneOptions& options, PlaneLayout& layout) {
  switch (format) {
    case Format::kMxfp8:
      DescribeMxfp8(geometry, shape, layout);
      return absl::OkStatus();
    case Format::kNvfp4:
      DescribeNvfp4(layout);
      return absl::OkStatus();
    case Format::kFp8Block:
      DescribeFp8Block(geometry, layout);
      return absl::OkStatus();
    case Format::kFp8Current:
    case Format::kFp8Delayed:
      return DescribePerTensor(format, options, layout);
    case Format::kNone:
      break;
  }
  return Error(Reason::kInvalidRequest,
               absl::StrCat("a matrix of format ", Name(format), " has no ", Name(layout.kind),
                            " plane; its one plane is ", Name(PlaneKind::kHighPrecision)));
}

}  // namespace

absl::string_view Name(PlaneKind kind) {
  switch (kind) {
    case PlaneKind::kRow:
      return "row";
    case PlaneKind::kColumn:
      return "column";
    case PlaneKind::kHighPrecision:
      return "high_precision";
  }
  return "invalid";
}

absl::string_view Name(PlanePart part) {
  switch (part) {
    case PlanePart::kPayload:
      return "payload";
    case PlanePart::kScales:
      return "scales";
    case PlanePart::kState:
      return "state";
  }
  return "invalid";
}

std::ostream& operator<<(std::ostream& out, PlaneKind kind) {
  return out << std::string(Name(kind));
}

std::ostream& operator<<(std::ostream& out, const MatrixShape& shape) {
  return out << "[" << shape.out << ", " << shape.in << "]";
}

bool PlaneLayout::Stores(PlanePart part) const {
  switch (part) {
    case PlanePart::kPayload:
      return !shares_row_payload;
    case PlanePart::kScales:
      return kind != PlaneKind::kHighPrecision && !shares_row_scales;
    case PlanePart::kState:
      return state_bytes > 0;
  }
  return false;
}

int64_t PlaneLayout::SizeBytesOf(PlanePart part) const {
  switch (part) {
    case PlanePart::kPayload:
      return payload_bytes;
    case PlanePart::kScales:
      return scale_bytes;
    case PlanePart::kState:
      return state_bytes;
  }
  return 0;
}

absl::StatusOr<PlaneLayout> PlaneLayoutFor(Format format, BlockGeometry geometry, PlaneKind kind,
                                           MatrixShape shape, DType nominal,
                                           const PlaneOptions& options) {
  if (shape.out < 0 || shape.in < 0) {
    return Error(Reason::kInvalidRequest,
                 absl::StrCat("matrix [", shape.out, ", ", shape.in, "] has a negative dimension"));
  }
  // No format's scales outnumber its elements by more than the tile padding.
  constexpr int64_t kDimensionMax = int64_t{1} << 40;
  if (shape.out > kDimensionMax || shape.in > kDimensionMax) {
    return Error(Reason::kLimitExceeded, absl::StrCat("matrix [", shape.out, ", ", shape.in,
                                                      "]: a dimension exceeds ", kDimensionMax));
  }
  PW_ASSIGN_OR_RETURN(const int64_t elements, CheckedMultiply(shape.out, shape.in));

  PlaneLayout layout;
  layout.kind = kind;
  layout.payload_rows = shape.out;
  layout.payload_columns = shape.in;
  if (kind == PlaneKind::kHighPrecision) {
    layout.payload_dtype = nominal;
    PW_ASSIGN_OR_RETURN(layout.payload_bytes, SizeBytes(nominal, elements));
    return layout;
  }
  PW_RETURN_IF_ERROR(Describe(format, geometry, shape, options, layout));
  if (!layout.shares_row_payload) {
    PW_ASSIGN_OR_RETURN(layout.payload_bytes,
                        CheckedMultiply(layout.payload_rows, layout.payload_row_bytes()));
  }
  PW_ASSIGN_OR_RETURN(const int64_t scales,
                      CheckedMultiply(layout.scale_rows, layout.scale_columns));
  PW_ASSIGN_OR_RETURN(layout.scale_bytes, SizeBytes(layout.scale_dtype, scales));
  return layout;
}

absl::StatusOr<PlaneLayout> WeightPlaneLayout(const Recipe& recipe, PlaneKind kind,
                                              MatrixShape shape, DType nominal) {
  PlaneOptions options;
  options.amax_history_length = recipe.amax_history_length;
  return PlaneLayoutFor(recipe.format, recipe.weight_geometry, kind, shape, nominal, options);
}

}  // namespace planewise
