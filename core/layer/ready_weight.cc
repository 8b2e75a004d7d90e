#include "core/layer/ready_weight.h"

#include "core/base/status_macros.h"
#include "core/layer/threaded_quantize.h"

namespace planewise {
namespace {

MatrixView DenseView(const PrimaryWeight& weight, const Plane& plane) {
  return {plane.payload.data(), weight.nominal, weight.shape.out, weight.shape.in};
}

}  // namespace

absl::StatusOr<ReadyWeight> PrepareWeight(const Quantizer& quantizer, ThreadPool& pool,
                                          MemoryBudget& budget, const PrimaryWeight& weight,
                                          WeightOperand form, const Recipe& recipe) {
  ReadyWeight ready;
  if (!form.made) {
    const Plane& plane = *weight.Fresh(form.plane);
    if (form.kind == OperandKind::kDense) {
      ready.operand.dense = DenseView(weight, plane);
    } else {
      ready.operand = {{}, SpanOf(plane), plane.exponents};
    }
    return ready;
  }
  PlaneUses uses;
  (form.plane == PlaneKind::kRow ? uses.row : uses.column) = MemoryUse::kTransient;
  PW_ASSIGN_OR_RETURN(
      const QuantizedPlanes planes,
      QuantizeOnThreads(quantizer, pool, budget,
                        DenseView(weight, *weight.Fresh(PlaneKind::kHighPrecision)),
                        QuantizeSpecFor(recipe, OperandRole::kWeight), uses, weight.name));
  ready.made = form.plane == PlaneKind::kRow ? planes.row : planes.column;
  ready.operand = {{}, SpanOf(*ready.made), ready.made->exponents};
  return ready;
}

absl::StatusOr<int64_t> MadeWeightBytes(const PrimaryWeight& weight, WeightOperand form,
                                        const Recipe& recipe) {
  if (!form.made) return 0;
  PW_ASSIGN_OR_RETURN(
      const PlaneLayout layout,
      LayoutFor(QuantizeSpecFor(recipe, OperandRole::kWeight), form.plane, weight.shape));
  return layout.total_bytes();
}

std::optional<ExponentRange> KnownExponents(const PrimaryWeight& weight, WeightOperand form) {
  if (form.made) return kAnyExponents;
  return weight.Fresh(form.plane)->exponents;
}

}  // namespace planewise
