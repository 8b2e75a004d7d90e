#include "core/quant/plane_geometry.h"

#include <bit>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"

namespace planewise {
namespace {

constexpr int kAll = 62;  // log2 of more rows than a matrix has

constexpr int Log2(int64_t power_of_two) {
  return std::countr_zero(static_cast<uint64_t>(power_of_two));
}

// Formats whose scale is stored for every line of a block: `block` elements along
// the direction of the plane, also where blocks are squares.
void SetReplicatedScales(int64_t block, BlockGeometry blocks, PlaneKind kind,
                         PlaneGeometry& geometry) {
  const bool is_row = kind == PlaneKind::kRow;
  const bool square = blocks == BlockGeometry::k2D;
  geometry.block_rows = is_row && !square ? 1 : block;
  geometry.block_columns = is_row || square ? block : 1;
  geometry.scale_rows_log2 = is_row ? 0 : Log2(block);
  geometry.scale_columns_log2 = is_row ? Log2(block) : 0;
}

// One scale a block.
void SetFp8BlockScales(BlockGeometry blocks, PlaneKind kind, PlaneGeometry& geometry) {
  const bool is_row = kind == PlaneKind::kRow;
  const bool square = blocks == BlockGeometry::k2D;
  geometry.block_rows = is_row && !square ? 1 : kFp8Block;
  geometry.block_columns = is_row || square ? kFp8Block : 1;
  geometry.scale_rows_log2 = Log2(geometry.block_rows);
  geometry.scale_columns_log2 = Log2(geometry.block_columns);
  // Scales are stored as the payload is, if blocks are squares; else the scales of
  // one block's width lie side by side.
  geometry.scales_transposed = square ? !is_row : is_row;
}

struct Candidate {
  Format format;
  BlockGeometry blocks;
};
// Of those whose layouts can coincide, it does not matter which is found.
constexpr Candidate kCandidates[] = {
    {Format::kMxfp8, BlockGeometry::k1D},      {Format::kMxfp8, BlockGeometry::k2D},
    {Format::kNvfp4, BlockGeometry::k1D},      {Format::kFp8Current, BlockGeometry::k1D},
    {Format::kFp8Delayed, BlockGeometry::k1D}, {Format::kFp8Block, BlockGeometry::k1D},
    {Format::kFp8Block, BlockGeometry::k2D},
};

bool IsLayoutOf(const Candidate& candidate, MatrixShape shape, const PlaneLayout& layout) {
  PlaneOptions options;
  options.amax_history_length = layout.state_elements() - 1;
  options.stores_per_tensor_column = layout.shares_row_scales && !layout.shares_row_payload;
  if (candidate.format == Format::kFp8Delayed && layout.kind == PlaneKind::kColumn) {
    return false;  // It has no state there: fp8_current's.
  }
  absl::StatusOr<PlaneLayout> required =
      PlaneLayoutFor(candidate.format, candidate.blocks, layout.kind, shape, DType::kBF16, options);
  if (!required.ok()) return false;
  if (layout.payload_dtype == DType::kF8E5M2 && required->payload_dtype == DType::kF8E4M3) {
    required->payload_dtype = DType::kF8E5M2;
  }
  return layout == *required;
}

std::string Describe(const PlaneLayout& layout) {
  return absl::StrCat(Name(layout.kind), " plane ", Name(layout.payload_dtype), " [",
                      layout.payload_rows, ", ", layout.payload_columns, "] with scales ",
                      Name(layout.scale_dtype), " [", layout.scale_rows, ", ", layout.scale_columns,
                      "]");
}

}  // namespace

PlaneGeometry GeometryOf(Format format, BlockGeometry blocks, const PlaneLayout& layout) {
  PlaneGeometry geometry;
  geometry.format = format;
  const bool is_column = layout.kind == PlaneKind::kColumn;
  switch (format) {
    case Format::kMxfp8:
      SetReplicatedScales(kMxfp8Block, blocks, layout.kind, geometry);
      break;
    case Format::kNvfp4:
      SetReplicatedScales(kNvfp4Block, blocks, layout.kind, geometry);
      geometry.payload_transposed = is_column;
      geometry.scales_transposed = is_column;
      break;
    case Format::kFp8Block:
      SetFp8BlockScales(blocks, layout.kind, geometry);
      geometry.payload_transposed = is_column;
      break;
    case Format::kFp8Current:
    case Format::kFp8Delayed:
      geometry.scale_rows_log2 = kAll;
      geometry.scale_columns_log2 = kAll;
      geometry.payload_transposed = is_column && !layout.shares_row_payload;
      break;
    case Format::kNone:
      break;
  }
  geometry.rows = geometry.payload_transposed ? layout.payload_columns : layout.payload_rows;
  geometry.columns = geometry.payload_transposed ? layout.payload_rows : layout.payload_columns;
  geometry.payload_stride =
      layout.payload_row_bytes() * (layout.payload_dtype == DType::kF4E2M1 ? 2 : 1);
  geometry.scale_stride = layout.scale_columns;
  return geometry;
}

absl::StatusOr<PlaneGeometry> FindGeometry(const PlaneLayout& layout, MatrixShape shape) {
  if (layout.kind == PlaneKind::kHighPrecision) {
    return Error(Reason::kInvalidRequest,
                 "a high_precision plane is not quantized: read it as it is");
  }
  for (const Candidate& candidate : kCandidates) {
    if (IsLayoutOf(candidate, shape, layout)) {
      return GeometryOf(candidate.format, candidate.blocks, layout);
    }
  }
  return Error(Reason::kShapeMismatch,
               absl::StrCat("observed ", Describe(layout), "; no format stores a matrix [",
                            shape.out, ", ", shape.in, "] like that"));
}

}  // namespace planewise
