#include "service/weights/mode_switcher.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "core/quant/weight_spec.h"
#include "planner/switch_snapshot.h"

namespace planewise {
namespace {

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
  // The same bytes; a column plane that the decision does not keep goes.
  absl::StatusOr<std::shared_ptr<const PrimaryWeight>> KeepPlanes(
      const std::shared_ptr<const PrimaryWeight>& weight, const PlaneDecision& decision) {
    if (!target_.quantized()) return weight;
    if (decision.column && weight->Fresh(PlaneKind::kColumn) == nullptr) {
      return Error(Reason::kColumnwiseMissing,
                   absl::StrCat("weight \"", weight->name, "\": its column plane is not stored "
                                "and cannot be made from the row plane"));
    }
    if (decision.column || weight->column == nullptr) return weight;
    PrimaryWeight row_only = *weight;
    row_only.column = nullptr;
    return std::make_shared<const PrimaryWeight>(std::move(row_only));
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
