#include "core/layer/threaded_quantize.h"

#include <algorithm>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/base/mutex.h"
#include "core/base/status_macros.h"

namespace planewise {
namespace {

absl::StatusOr<std::shared_ptr<Plane>> Allocate(MemoryBudget& budget, std::optional<MemoryUse> use,
                                                PlaneKind kind, MatrixView src,
                                                const QuantizeSpec& spec, absl::string_view what) {
  if (!use) return std::shared_ptr<Plane>();
  PW_ASSIGN_OR_RETURN(const PlaneLayout layout, LayoutFor(spec, kind, {src.rows, src.columns}));
  return AllocatePlane(budget, *use, layout, WeightVersion{}, what);
}

// What several threads' parts come to.
class Outcome {
 public:
  void Add(const absl::Status& status) {
    if (status.ok()) return;
    MutexLock lock(mutex_);
    status_.Update(status);
  }

  void Add(const TensorAmax& amax) {
    MutexLock lock(mutex_);
    amax_.Raise(amax);
  }

  // Widens the range of `plane`, if there is one, by that of some of its rows.
  void AddExponents(Plane* plane, const Plane* row, RowRange rows) {
    if (plane == nullptr) return;
    const std::optional<ExponentRange> range = NonZeroExponents(SpanOf(*plane, row), rows);
    if (!range) return;
    MutexLock lock(mutex_);
    if (!plane->exponents) plane->exponents = range;
    plane->exponents->min = std::min(plane->exponents->min, range->min);
    plane->exponents->max = std::max(plane->exponents->max, range->max);
  }

  TensorAmax amax() {
    MutexLock lock(mutex_);
    return amax_;
  }

  absl::Status status() {
    MutexLock lock(mutex_);
    return status_;
  }

 private:
  Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  TensorAmax amax_ ABSL_GUARDED_BY(mutex_);
};

template <typename Function>
void ForEachPart(ThreadPool& pool, MatrixView src, Function function) {
  // A matrix without rows has one part, which writes what a plane has once.
  const int64_t parts = std::max(int64_t{1}, CeilDivide(src.rows, kPlaneRowAlignment));
  pool.ForEach(parts, [&](int64_t part, int) {
    const int64_t first = part * kPlaneRowAlignment;
    function(RowRange{first, std::min(kPlaneRowAlignment, src.rows - first)});
  });
}

}  // namespace

absl::StatusOr<QuantizedPlanes> QuantizeOnThreads(const Quantizer& quantizer, ThreadPool& pool,
                                                  MemoryBudget& budget, MatrixView src,
                                                  const QuantizeSpec& spec, PlaneUses uses,
                                                  absl::string_view what) {
  QuantizedPlanes planes;
  PW_ASSIGN_OR_RETURN(planes.row, Allocate(budget, uses.row, PlaneKind::kRow, src, spec, what));
  PW_ASSIGN_OR_RETURN(planes.column,
                      Allocate(budget, uses.column, PlaneKind::kColumn, src, spec, what));
  if (planes.row == nullptr && planes.column == nullptr) return planes;
  PlaneSpan row;
  PlaneSpan column;
  if (planes.row != nullptr) row = MutableSpanOf(*planes.row);
  if (planes.column != nullptr) column = MutableSpanOf(*planes.column);

  Outcome outcome;
  if (NeedsAmax(spec) || HasDelayedState(spec)) {
    const PlaneWishes wishes = {planes.row != nullptr, planes.column != nullptr};
    ForEachPart(pool, src, [&](RowRange rows) {
      TensorAmax part;
      outcome.Add(quantizer.MeasureAmax(src, spec, wishes, rows, &part));
      outcome.Add(part);
    });
    const absl::Status measured = outcome.status();
    if (!measured.ok()) return Annotate(measured, what);
  }
  const TensorAmax amax = outcome.amax();
  ForEachPart(pool, src, [&](RowRange rows) {
    const absl::Status quantized =
        quantizer.Quantize(src, spec, amax, rows, planes.row != nullptr ? &row : nullptr,
                           planes.column != nullptr ? &column : nullptr);
    if (!quantized.ok()) return outcome.Add(quantized);
    outcome.AddExponents(planes.row.get(), nullptr, rows);
    outcome.AddExponents(planes.column.get(), planes.row.get(), rows);
  });
  const absl::Status status = outcome.status();
  if (!status.ok()) return Annotate(status, what);
  if (planes.row != nullptr) StartDelayedState(spec, amax, *planes.row);
  return planes;
}

}  // namespace planewise
