#include "service/weights/mode_switcher.h"

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "core/quant/delayed_scaling.h"
#include "core/quant/plane_derivation.h"
#include "core/quant/weight_spec.h"
#include "planner/switch_snapshot.h"

namespace planewise {
namespace {

void CopyBytes(const HostBuffer& from, HostBuffer& to) {
  if (from.size_bytes() == 0) return;
  std::memcpy(to.data(), from.data(), static_cast<size_t>(from.size_bytes()));
}

class Switcher {
 public:
  Switcher(const Recipe& target, WeightVersion number, const Quantizer& quantizer,
           MemoryBudget& budget)
      : target_(target), number_(number), quantizer_(quantizer), budget_(budget) {}

  absl::StatusOr<HostedLayer> Switch(const HostedLayer& from, const PlaneDecision& decision) {
    HostedLayer layer = from;
    layer.decision = decision;
    const PrimaryWeight& weight = *from.weight;
    if (weight.format == target_.format) {
      PW_ASSIGN_OR_RETURN(layer.weight, KeepPlanes(from.weight, decision));
    } else if (!target_.quantized()) {
      PW_ASSIGN_OR_RETURN(layer.weight, Dequantize(weight));
      layer.provenance = absl::StrCat(kDequantizedProvenance, Name(weight.format),
                                      " (", from.provenance, ")");
    } else {
      PW_ASSIGN_OR_RETURN(layer.weight, Quantize(weight, decision));
      layer.provenance = absl::StrCat("quantized from ", Name(weight.nominal), " (",
                                      from.provenance, ")");
    }
    return layer;
  }

 private:
  // The same codes. A column plane goes that the decision does not keep, and is
  // derived if it keeps one that is not stored.
  absl::StatusOr<std::shared_ptr<const PrimaryWeight>> KeepPlanes(
      const std::shared_ptr<const PrimaryWeight>& weight, const PlaneDecision& decision) {
    if (!target_.quantized()) return weight;
    if (target_.format == Format::kFp8Delayed &&
        weight->amax_history_length != target_.amax_history_length) {
      return ResizeState(*weight, decision);
    }
    const bool stored = weight->Fresh(PlaneKind::kColumn) != nullptr;
    if (decision.column == stored && stored == (weight->column != nullptr)) return weight;
    PrimaryWeight kept = *weight;
    kept.column = nullptr;
    if (decision.column) {
      if (stored) return weight;
      PW_ASSIGN_OR_RETURN(kept.column, DeriveColumn(*weight));
    }
    return std::make_shared<const PrimaryWeight>(std::move(kept));
  }

  absl::StatusOr<std::shared_ptr<const Plane>> DeriveColumn(const PrimaryWeight& weight) {
    const Plane& row = *weight.Fresh(PlaneKind::kRow);
    PW_ASSIGN_OR_RETURN(const PlaneLayout layout,
                        WeightPlaneLayout(target_, PlaneKind::kColumn, weight.shape,
                                          weight.nominal));
    PW_ASSIGN_OR_RETURN(const std::shared_ptr<Plane> column,
                        AllocatePlane(budget_, MemoryUse::kWeights, layout, weight.epoch,
                                      weight.name));
    const absl::Status status =
        DerivePlane(weight.format, weight.geometry, SpanOf(row), {0, weight.shape.out},
                    MutableSpanOf(*column));
    if (!status.ok()) return Annotate(status, absl::StrCat("weight \"", weight.name, "\""));
    column->exponents = NonZeroExponents(SpanOf(*column, &row));
    return column;
  }

  // A history of another length has a plane of its own: planes do not change once
  // they are shared.
  absl::StatusOr<std::shared_ptr<const PrimaryWeight>> ResizeState(const PrimaryWeight& weight,
                                                                   const PlaneDecision& decision) {
    const Plane& row = *weight.Fresh(PlaneKind::kRow);
    PW_ASSIGN_OR_RETURN(const PlaneLayout layout,
                        WeightPlaneLayout(target_, PlaneKind::kRow, weight.shape,
                                          weight.nominal));
    PW_ASSIGN_OR_RETURN(const std::shared_ptr<Plane> resized,
                        AllocatePlane(budget_, MemoryUse::kWeights, layout, number_,
                                      weight.name));
    CopyBytes(row.payload, resized->payload);
    CopyBytes(row.scales, resized->scales);
    const float* const state = reinterpret_cast<const float*>(row.state.data());
    const std::vector<float> words = ResizedDelayedState(
        {state, static_cast<size_t>(row.layout.state_elements())}, target_.amax_history_length);
    std::memcpy(resized->state.data(), words.data(), words.size() * sizeof(float));
    resized->exponents = row.exponents;

    PrimaryWeight changed = Identity(weight);
    changed.format = weight.format;
    changed.geometry = weight.geometry;
    changed.amax_history_length = target_.amax_history_length;
    changed.row = resized;
    if (decision.column) {
      PW_ASSIGN_OR_RETURN(changed.column, DeriveColumn(changed));
    }
    return std::make_shared<const PrimaryWeight>(std::move(changed));
  }

  absl::StatusOr<std::shared_ptr<const PrimaryWeight>> Dequantize(const PrimaryWeight& weight) {
    PW_ASSIGN_OR_RETURN(const PlaneLayout layout,
                        PlaneLayoutFor(Format::kNone, BlockGeometry::k1D,
                                       PlaneKind::kHighPrecision, weight.shape, weight.nominal));
    auto plane = std::make_shared<Plane>();
    plane->layout = layout;
    plane->epoch = number_;
    PW_ASSIGN_OR_RETURN(plane->payload,
                        HostBuffer::AllocateUninitialized(budget_, MemoryUse::kWeights,
                                                          layout.payload_bytes, weight.name));
    const MutableMatrixView matrix{plane->payload.data(), weight.nominal, weight.shape.out,
                                   weight.shape.in};
    const Plane& row = *weight.Fresh(PlaneKind::kRow);
    PW_RETURN_IF_ERROR(quantizer_.Dequantize(SpanOf(row), matrix, AllRows(matrix)));
    PrimaryWeight dequantized = Identity(weight);
    dequantized.high_precision = std::move(plane);
    return std::make_shared<const PrimaryWeight>(std::move(dequantized));
  }

  absl::StatusOr<std::shared_ptr<const PrimaryWeight>> Quantize(const PrimaryWeight& weight,
                                                                const PlaneDecision& decision) {
    const Plane& source = *weight.Fresh(PlaneKind::kHighPrecision);
    const MatrixView matrix{source.payload.data(), weight.nominal, weight.shape.out,
                            weight.shape.in};
    PW_ASSIGN_OR_RETURN(const QuantizeSpec spec, NewWeightSpec(quantizer_, target_, matrix));
    PW_ASSIGN_OR_RETURN(
        QuantizedPlanes planes,
        QuantizeToPlanes(quantizer_, budget_, MemoryUse::kWeights, matrix, spec,
                         {decision.row, decision.column}, number_, weight.name));
    PrimaryWeight quantized = Identity(weight);
    quantized.format = target_.format;
    quantized.geometry = target_.weight_geometry;
    quantized.amax_history_length = target_.amax_history_length;
    quantized.row = std::move(planes.row);
    quantized.column = std::move(planes.column);
    return std::make_shared<const PrimaryWeight>(std::move(quantized));
  }

  // The same weight with other bytes.
  PrimaryWeight Identity(const PrimaryWeight& weight) const {
    PrimaryWeight changed;
    changed.name = weight.name;
    changed.shape = weight.shape;
    changed.nominal = weight.nominal;
    changed.epoch = number_;
    return changed;
  }

  const Recipe& target_;
  const WeightVersion number_;
  const Quantizer& quantizer_;
  MemoryBudget& budget_;
};

}  // namespace

absl::StatusOr<ModelVersion> SwitchModel(const ModelVersion& from, const Recipe& target,
                                         absl::Span<const WeightVerdict> verdicts,
                                         WeightVersion number, const Quantizer& quantizer,
                                         MemoryBudget& budget, const std::atomic<bool>& cancel) {
  if (verdicts.size() != from.layers.size()) {
    return Error(Reason::kInternal,
                 absl::StrCat("model \"", from.model, "\": ", verdicts.size(), " verdicts for ",
                              from.layers.size(), " layers"));
  }
  Switcher switcher(target, number, quantizer, budget);
  ModelVersion version = from;
  version.version = number;
  version.recipe = target;
  for (size_t i = 0; i < version.layers.size(); ++i) {
    if (cancel) {
      return Error(Reason::kCancelled,
                   absl::StrCat("switch of model \"", from.model, "\" was given up"));
    }
    PW_ASSIGN_OR_RETURN(version.layers[i],
                        switcher.Switch(from.layers[i], verdicts[i].decision));
  }
  return version;
}

}  // namespace planewise
