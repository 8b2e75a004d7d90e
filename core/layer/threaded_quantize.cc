#include "core/layer/threaded_quantize.h"

#include <algorithm>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/base/mutex.h"
#include "core/base/status_macros.h"

namespace planewise {
namespace {

// A plane that is being made, or none.
struct Target {
  std::shared_ptr<Plane> plane;
  PlaneSpan span;
};

absl::StatusOr<Target> Allocate(MemoryBudget& budget, std::optional<MemoryUse> use,
                                PlaneKind kind, MatrixView src, DType element,
                                absl::string_view what) {
  Target target;
  if (!use) return target;
  PW_ASSIGN_OR_RETURN(const PlaneLayout layout,
                      Mxfp8LayoutFor(kind, {src.rows, src.columns}, element));
  target.plane = std::make_shared<Plane>();
  target.plane->layout = layout;
  PW_ASSIGN_OR_RETURN(target.plane->payload, HostBuffer::AllocateUninitialized(
                                                 budget, *use, layout.payload_bytes, what));
  PW_ASSIGN_OR_RETURN(target.plane->scales, HostBuffer::AllocateUninitialized(
                                                budget, *use, layout.scale_bytes, what));
  target.span = {layout, reinterpret_cast<uint8_t*>(target.plane->payload.data()),
                 reinterpret_cast<uint8_t*>(target.plane->scales.data())};
  return target;
}

// The first failure and the exponents of several threads' parts.
class Outcome {
 public:
  void Add(const absl::Status& status) {
    if (status.ok()) return;
    MutexLock lock(mutex_);
    status_.Update(status);
  }

  // Widens the range of `plane`, if there is one, by that of a part of it.
  void Add(Plane* plane, const PlaneSpan& part) {
    if (plane == nullptr) return;
    const std::optional<ExponentRange> range =
        NonZeroExponents({part.layout, part.payload, part.scales});
    if (!range) return;
    MutexLock lock(mutex_);
    if (!plane->exponents) plane->exponents = range;
    plane->exponents->min = std::min(plane->exponents->min, range->min);
    plane->exponents->max = std::max(plane->exponents->max, range->max);
  }

  absl::Status status() {
    MutexLock lock(mutex_);
    return status_;
  }

 private:
  Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

MatrixView RowsOf(MatrixView matrix, int64_t first_row, int64_t row_count) {
  const int64_t row_bytes = matrix.columns * (FactsOf(matrix.dtype).bits / 8);
  return {static_cast<const char*>(matrix.data) + first_row * row_bytes, matrix.dtype, row_count,
          matrix.columns};
}

}  // namespace

absl::StatusOr<QuantizedPlanes> QuantizeOnThreads(const Quantizer& quantizer, ThreadPool& pool,
                                                  MemoryBudget& budget, MatrixView src,
                                                  DType element, PlaneUses uses,
                                                  absl::string_view what) {
  PW_ASSIGN_OR_RETURN(const Target row,
                      Allocate(budget, uses.row, PlaneKind::kRow, src, element, what));
  PW_ASSIGN_OR_RETURN(const Target column,
                      Allocate(budget, uses.column, PlaneKind::kColumn, src, element, what));
  if (row.plane == nullptr && column.plane == nullptr) return QuantizedPlanes{};
  Outcome outcome;
  pool.ForEach(CeilDivide(src.rows, kPlaneRowAlignment), [&](int64_t part, int) {
    const int64_t first = part * kPlaneRowAlignment;
    const int64_t count = std::min(kPlaneRowAlignment, src.rows - first);
    PlaneSpan row_part;
    PlaneSpan column_part;
    if (row.plane != nullptr) row_part = RowsOf(row.span, first, count);
    if (column.plane != nullptr) column_part = RowsOf(column.span, first, count);
    outcome.Add(quantizer.QuantizeMxfp8(RowsOf(src, first, count), element,
                                        row.plane != nullptr ? &row_part : nullptr,
                                        column.plane != nullptr ? &column_part : nullptr));
    outcome.Add(row.plane.get(), row_part);
    outcome.Add(column.plane.get(), column_part);
  });
  const absl::Status status = outcome.status();
  if (!status.ok()) return Annotate(status, what);
  return QuantizedPlanes{row.plane, column.plane};
}

}  // namespace planewise
