#include "core/quant/quantizer.h"

#include <algorithm>
#include <limits>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "core/quant/delayed_scaling.h"
#include "core/quant/mxfp8_geometry.h"

namespace planewise {
namespace {

uint8_t* Bytes(HostBuffer& buffer) { return reinterpret_cast<uint8_t*>(buffer.data()); }
const uint8_t* Bytes(const HostBuffer& buffer) {
  return reinterpret_cast<const uint8_t*>(buffer.data());
}

absl::Span<float> StateOf(Plane& plane) {
  return {reinterpret_cast<float*>(plane.state.data()),
          static_cast<size_t>(plane.layout.state_elements())};
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

ConstPlaneSpan SpanOf(const Plane& plane, const Plane* row) {
  const Plane& payload = plane.layout.shares_row_payload && row != nullptr ? *row : plane;
  const Plane& scales = plane.layout.shares_row_scales && row != nullptr ? *row : plane;
  return {plane.layout, Bytes(payload.payload), Bytes(scales.scales),
          reinterpret_cast<const float*>(plane.state.data())};
}

ConstPlaneSpan ConstOf(const PlaneSpan& span) {
  return {span.layout, span.payload, span.scales, span.state};
}

PlaneSpan MutableSpanOf(Plane& plane) {
  return {plane.layout, Bytes(plane.payload), Bytes(plane.scales),
          reinterpret_cast<float*>(plane.state.data())};
}

absl::StatusOr<PlaneLayout> Mxfp8LayoutFor(PlaneKind kind, MatrixShape shape, DType element) {
  return LayoutFor({.format = Format::kMxfp8, .element = element}, kind, shape);
}

absl::StatusOr<std::shared_ptr<Plane>> AllocatePlane(MemoryBudget& budget, MemoryUse use,
                                                     const PlaneLayout& layout, WeightVersion epoch,
                                                     absl::string_view what) {
  auto plane = std::make_shared<Plane>();
  plane->layout = layout;
  plane->epoch = epoch;
  PW_ASSIGN_OR_RETURN(plane->payload,
                      HostBuffer::AllocateUninitialized(budget, use, layout.payload_bytes, what));
  PW_ASSIGN_OR_RETURN(plane->scales,
                      HostBuffer::AllocateUninitialized(budget, use, layout.scale_bytes, what));
  PW_ASSIGN_OR_RETURN(plane->state,
                      HostBuffer::AllocateUninitialized(budget, use, layout.state_bytes, what));
  return plane;
}

void StartDelayedState(const QuantizeSpec& spec, const TensorAmax& amax, Plane& row) {
  if (!HasDelayedState(spec)) return;
  const absl::Span<float> state = StateOf(row);
  InitializeDelayedState(state);
  state[0] = spec.delayed_scale;
  RecordAmax(state, amax.row);
}

absl::StatusOr<QuantizedPlanes> QuantizeToPlanes(const Quantizer& quantizer, MemoryBudget& budget,
                                                 MemoryUse use, MatrixView src,
                                                 const QuantizeSpec& spec, PlaneWishes wishes,
                                                 WeightVersion epoch, absl::string_view what) {
  const MatrixShape shape{src.rows, src.columns};
  QuantizedPlanes planes;
  PlaneSpan row;
  PlaneSpan column;
  if (wishes.row) {
    PW_ASSIGN_OR_RETURN(const PlaneLayout layout, LayoutFor(spec, PlaneKind::kRow, shape));
    PW_ASSIGN_OR_RETURN(planes.row, AllocatePlane(budget, use, layout, epoch, what));
    row = MutableSpanOf(*planes.row);
  }
  if (wishes.column) {
    PW_ASSIGN_OR_RETURN(const PlaneLayout layout, LayoutFor(spec, PlaneKind::kColumn, shape));
    PW_ASSIGN_OR_RETURN(planes.column, AllocatePlane(budget, use, layout, epoch, what));
    column = MutableSpanOf(*planes.column);
  }
  TensorAmax amax;
  absl::Status status;
  if (NeedsAmax(spec) || HasDelayedState(spec)) {
    status = quantizer.MeasureAmax(src, spec, wishes, AllRows(src), &amax);
  }
  if (status.ok()) {
    status = quantizer.Quantize(src, spec, amax, AllRows(src), wishes.row ? &row : nullptr,
                                wishes.column ? &column : nullptr);
  }
  if (!status.ok()) return Annotate(status, what);
  if (planes.row != nullptr) {
    StartDelayedState(spec, amax, *planes.row);
    planes.row->exponents = NonZeroExponents(SpanOf(*planes.row));
  }
  if (planes.column != nullptr) {
    planes.column->exponents = NonZeroExponents(SpanOf(*planes.column, planes.row.get()));
  }
  return planes;
}

std::optional<ExponentRange> NonZeroExponents(const ConstPlaneSpan& plane) {
  return NonZeroExponents(plane, {0, plane.layout.payload_rows});
}

std::optional<ExponentRange> NonZeroExponents(const ConstPlaneSpan& plane, RowRange rows) {
  const PlaneLayout& layout = plane.layout;
  if (layout.scale_dtype != DType::kF8E8M0) return std::nullopt;
  const int64_t rows_per_scale_row = layout.kind == PlaneKind::kRow ? 1 : kMxfp8Block;
  std::optional<ExponentRange> range;
  for (int64_t i = rows.first / rows_per_scale_row; i < CeilDivide(rows.end(), rows_per_scale_row);
       ++i) {
    const uint8_t* scales = plane.scales + i * layout.scale_columns;
    for (int64_t j = 0; j < layout.used_scale_columns; ++j) {
      // Only a scale that would widen the range is worth a look at its codes.
      const int scale = scales[j];
      if (range && scale >= range->min && scale <= range->max) continue;
      if (!AnyNonZero(plane.payload, ElementsOfBlock(layout, i, j))) continue;
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
