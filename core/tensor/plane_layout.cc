#include "core/tensor/plane_layout.h"

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

absl::Status FillMxfp8Scales(PlaneKind kind, MatrixShape shape, PlaneLayout& layout) {
  layout.scale_dtype = DType::kF8E8M0;
  if (kind == PlaneKind::kRow) {
    layout.used_scale_rows = shape.out;
    layout.used_scale_columns = CeilDivide(shape.in, kMxfp8Block);
    layout.scale_rows = RoundUp(layout.used_scale_rows, kScaleTileOuter);
    layout.scale_columns = RoundUp(layout.used_scale_columns, kScaleTileInner);
  } else {
    layout.used_scale_rows = CeilDivide(shape.out, kMxfp8Block);
    layout.used_scale_columns = shape.in;
    layout.scale_rows = RoundUp(layout.used_scale_rows, kScaleTileInner);
    layout.scale_columns = RoundUp(layout.used_scale_columns, kScaleTileOuter);
  }
  PW_ASSIGN_OR_RETURN(layout.scale_bytes,
                      CheckedMultiply(layout.scale_rows, layout.scale_columns));
  return absl::OkStatus();
}

}  // namespace

absl::string_view Name(PlaneKind kind) {
  switch (kind) {
    case PlaneKind::kRow: return "row";
    case PlaneKind::kColumn: return "column";
    case PlaneKind::kHighPrecision: return "high_precision";
  }
  return "invalid";
}

std::ostream& operator<<(std::ostream& out, PlaneKind kind) {
  return out << std::string(Name(kind));
}

std::ostream& operator<<(std::ostream& out, const MatrixShape& shape) {
  return out << "[" << shape.out << ", " << shape.in << "]";
}

absl::StatusOr<PlaneLayout> PlaneLayoutFor(Format format, BlockGeometry geometry, PlaneKind kind,
                                           MatrixShape shape, DType nominal) {
  if (shape.out < 0 || shape.in < 0) {
    return Error(Reason::kInvalidRequest, absl::StrCat("matrix [", shape.out, ", ", shape.in,
                                                       "] has a negative dimension"));
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
  if (format != Format::kMxfp8 || geometry != BlockGeometry::k1D) {
    return Error(Reason::kNotSupported,
                 absl::StrCat("planes of ", Name(format), " with ", Name(geometry),
                              " blocks are not part of this build"));
  }
  layout.payload_dtype = DType::kF8E4M3;
  layout.payload_bytes = elements;
  PW_RETURN_IF_ERROR(FillMxfp8Scales(kind, shape, layout));
  return layout;
}

}  // namespace planewise
