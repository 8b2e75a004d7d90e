#include "core/quant/quantizer.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "core/quant/mxfp8_geometry.h"
#include "core/recipe/recipe.h"

namespace planewise {
namespace {

uint8_t* Bytes(HostBuffer& buffer) { return reinterpret_cast<uint8_t*>(buffer.data()); }

absl::StatusOr<std::shared_ptr<Plane>> AllocatePlane(MemoryBudget& budget, MemoryUse use,
                                                     PlaneLayout layout, WeightVersion epoch,
                                                     absl::string_view what) {
  auto plane = std::make_shared<Plane>();
  plane->layout = layout;
  plane->epoch = epoch;
  PW_ASSIGN_OR_RETURN(plane->payload, HostBuffer::AllocateUninitialized(
                                          budget, use, layout.payload_bytes, what));
  PW_ASSIGN_OR_RETURN(plane->scales, HostBuffer::AllocateUninitialized(
                                         budget, use, layout.scale_bytes, what));
  return plane;
}

PlaneSpan MutableSpanOf(Plane& plane) {
  return {plane.layout, Bytes(plane.payload), Bytes(plane.scales)};
}

PlaneLayout LayoutOfRows(const PlaneLayout& whole, int64_t row_count) {
  // Cannot fail: the part is no larger than the plane it belongs to.
  return *Mxfp8LayoutFor(whole.kind, {row_count, whole.payload_columns}, whole.payload_dtype);
}

int64_t ScaleOffset(const PlaneLayout& layout, int64_t first_row) {
  const int64_t rows_per_scale_row = layout.kind == PlaneKind::kRow ? 1 : kMxfp8Block;
  return first_row / rows_per_scale_row * layout.scale_columns;
}

// Whether any code of the block is neither +0 nor -0.
bool AnyNonZero(const uint8_t* payload, BlockElements block) {
  uint8_t bits = 0;
  for (int64_t i = 0; i < block.count; ++i) bits |= payload[block.first + i * block.stride];
  return (bits & 0x7F) != 0;
}

// The first of `values` whose magnitude bits reach those of infinity. Looks for
// the block first: a maximum over a fixed count is what compilers vectorise.
template <typename Signed, Signed kInfinity>
std::optional<int64_t> FirstNonFiniteOf(const Signed* values, int64_t count) {
  constexpr int64_t kBlock = 1024;
  constexpr Signed kMagnitude = std::numeric_limits<Signed>::max();
  int64_t begin = 0;
  for (; begin + kBlock <= count; begin += kBlock) {
    Signed largest = 0;
    for (int64_t i = 0; i < kBlock; ++i) {
      largest = std::max<Signed>(largest, values[begin + i] & kMagnitude);
    }
    if (largest >= kInfinity) break;
  }
  for (int64_t i = begin; i < count; ++i) {
    if ((values[i] & kMagnitude) >= kInfinity) return i;
  }
  return std::nullopt;
}

}  // namespace

ConstPlaneSpan SpanOf(const Plane& plane) {
  return {plane.layout, reinterpret_cast<const uint8_t*>(plane.payload.data()),
          reinterpret_cast<const uint8_t*>(plane.scales.data())};
}

absl::StatusOr<PlaneLayout> Mxfp8LayoutFor(PlaneKind kind, MatrixShape shape, DType element) {
  if (kind == PlaneKind::kHighPrecision) {
    return Error(Reason::kInvalidRequest, "an MXFP8 plane is a row or a column plane");
  }
  if (element != DType::kF8E4M3 && element != DType::kF8E5M2) {
    return Error(Reason::kDtypeUnsupported,
                 absl::StrCat("MXFP8 elements of ", Name(element),
                              "; required F8_E4M3 or F8_E5M2"));
  }
  PW_ASSIGN_OR_RETURN(PlaneLayout layout, PlaneLayoutFor(Format::kMxfp8, BlockGeometry::k1D, kind,
                                                         shape, DType::kBF16));
  layout.payload_dtype = element;
  return layout;
}

PlaneSpan RowsOf(const PlaneSpan& plane, int64_t first_row, int64_t row_count) {
  return {LayoutOfRows(plane.layout, row_count),
          plane.payload + first_row * plane.layout.payload_columns,
          plane.scales + ScaleOffset(plane.layout, first_row)};
}

ConstPlaneSpan RowsOf(const ConstPlaneSpan& plane, int64_t first_row, int64_t row_count) {
  return {LayoutOfRows(plane.layout, row_count),
          plane.payload + first_row * plane.layout.payload_columns,
          plane.scales + ScaleOffset(plane.layout, first_row)};
}

absl::StatusOr<QuantizedPlanes> QuantizeToPlanes(const Quantizer& quantizer, MemoryBudget& budget,
                                                 MemoryUse use, MatrixView src, DType element,
                                                 PlaneWishes wishes, WeightVersion epoch,
                                                 absl::string_view what) {
  const MatrixShape shape{src.rows, src.columns};
  QuantizedPlanes planes;
  PlaneSpan row;
  PlaneSpan column;
  if (wishes.row) {
    PW_ASSIGN_OR_RETURN(const PlaneLayout layout, Mxfp8LayoutFor(PlaneKind::kRow, shape, element));
    PW_ASSIGN_OR_RETURN(planes.row, AllocatePlane(budget, use, layout, epoch, what));
    row = MutableSpanOf(*planes.row);
  }
  if (wishes.column) {
    PW_ASSIGN_OR_RETURN(const PlaneLayout layout,
                        Mxfp8LayoutFor(PlaneKind::kColumn, shape, element));
    PW_ASSIGN_OR_RETURN(planes.column, AllocatePlane(budget, use, layout, epoch, what));
    column = MutableSpanOf(*planes.column);
  }
  const absl::Status status = quantizer.QuantizeMxfp8(src, element, wishes.row ? &row : nullptr,
                                                      wishes.column ? &column : nullptr);
  if (!status.ok()) return Annotate(status, what);
  for (const std::shared_ptr<Plane>& plane : {planes.row, planes.column}) {
    if (plane != nullptr) plane->exponents = NonZeroExponents(SpanOf(*plane));
  }
  return planes;
}

std::optional<ExponentRange> NonZeroExponents(ConstPlaneSpan plane) {
  std::optional<ExponentRange> range;
  for (int64_t i = 0; i < plane.layout.used_scale_rows; ++i) {
    const uint8_t* scales = plane.scales + i * plane.layout.scale_columns;
    for (int64_t j = 0; j < plane.layout.used_scale_columns; ++j) {
      // Only a scale that would widen the range is worth a look at its codes.
      const int scale = scales[j];
      if (range && scale >= range->min && scale <= range->max) continue;
      if (!AnyNonZero(plane.payload, ElementsOfBlock(plane.layout, i, j))) continue;
      if (!range) range = ExponentRange{scale, scale};
      range->min = std::min(range->min, scale);
      range->max = std::max(range->max, scale);
    }
  }
  return range;
}

std::optional<int64_t> FirstNonFinite(MatrixView src) {
  switch (src.dtype) {
    case DType::kF32:
      return FirstNonFiniteOf<int32_t, 0x7F800000>(static_cast<const int32_t*>(src.data),
                                                   src.elements());
    case DType::kBF16:
      return FirstNonFiniteOf<int16_t, 0x7F80>(static_cast<const int16_t*>(src.data),
                                               src.elements());
    case DType::kF16:
      return FirstNonFiniteOf<int16_t, 0x7C00>(static_cast<const int16_t*>(src.data),
                                               src.elements());
    default:
      return std::nullopt;  // Integers are finite.
  }
}

}  // namespace planewise
