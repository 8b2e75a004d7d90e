#include "service/weights/model_loader.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/format_constants.h"
#include "core/quant/weight_spec.h"
#include "service/weights/nominal_cast.h"

namespace planewise {
namespace {

class Loader {
 public:
  Loader(const ModelSource& source, const CreateModelSpec& spec, WeightVersion number,
         const Quantizer& quantizer, MemoryBudget& budget, const TransferControl& control)
      : source_(source),
        spec_(spec),
        number_(number),
        quantizer_(quantizer),
        budget_(budget),
        meter_(control, "load", source.plan.totals.source_bytes) {}

  absl::StatusOr<ModelVersion> Load() {
    ModelVersion version;
    version.model = spec_.name;
    version.version = number_;
    version.recipe = spec_.recipe;
    version.policy = spec_.policy;
    version.backward_enabled = spec_.backward_enabled;
    version.trainable = spec_.trainable;
    version.source_path = source_.directory.path();
    for (const LocalTensorPlan& local : source_.plan.local) version.local.push_back(local.tensor);
    for (const LayerPlan& plan : source_.plan.layers) {
      PW_ASSIGN_OR_RETURN(version.layers.emplace_back(), LoadLayer(plan));
    }
    return version;
  }

 private:
  // A tensor [rows, columns] in the nominal type, while it is being taken in.
  struct Nominal {
    HostBuffer bytes;
    MatrixView view;
    DType source_dtype = DType::kF32;
  };

  absl::StatusOr<HostedLayer> LoadLayer(const LayerPlan& plan) {
    HostedLayer layer;
    layer.name = plan.name;
    layer.decision = plan.decision;
    {
      PW_ASSIGN_OR_RETURN(const Nominal tensor, ReadNominal(plan.weight, plan.shape));
      PW_ASSIGN_OR_RETURN(layer.weight, spec_.recipe.quantized() ? Quantize(plan, tensor)
                                                                 : Keep(plan.weight, plan.shape,
                                                                        plan.planes.front(),
                                                                        tensor));
      layer.provenance = Provenance(tensor.source_dtype);
    }
    if (plan.bias.has_value()) {
      const MatrixShape shape{1, plan.shape.out};
      const std::string name = BiasName(plan);
      PW_ASSIGN_OR_RETURN(const Nominal tensor, ReadNominal(name, shape));
      PW_ASSIGN_OR_RETURN(layer.bias, Keep(name, shape, *plan.bias, tensor));
    }
    return layer;
  }

  std::string Provenance(DType source) const {
    const DType nominal = source_.plan.options.nominal;
    const std::string via =
        source == nominal ? std::string() : absl::StrCat(" via ", Name(nominal));
    return absl::StrCat(spec_.recipe.quantized() ? "quantized" : "kept", " from ", Name(source),
                        via);
  }

  std::string BiasName(const LayerPlan& plan) const {
    for (const InventoryTensor& tensor : source_.inventory.tensors) {
      if (tensor.layer == plan.name && tensor.role == TensorRole::kLinearBias) return tensor.name;
    }
    return absl::StrCat(plan.name, ".bias");
  }

  absl::StatusOr<std::shared_ptr<const PrimaryWeight>> Quantize(const LayerPlan& plan,
                                                                const Nominal& tensor) {
    PW_ASSIGN_OR_RETURN(const QuantizeSpec spec,
                        NewWeightSpec(quantizer_, spec_.recipe, tensor.view));
    PW_ASSIGN_OR_RETURN(
        QuantizedPlanes planes,
        QuantizeToPlanes(quantizer_, budget_, MemoryUse::kWeights, tensor.view, spec,
                         {plan.decision.row, plan.decision.column}, number_, plan.weight));
    PrimaryWeight weight = Identity(plan.weight, plan.shape);
    weight.format = spec_.recipe.format;
    weight.geometry = spec_.recipe.weight_geometry;
    weight.amax_history_length = spec_.recipe.amax_history_length;
    weight.row = std::move(planes.row);
    weight.column = std::move(planes.column);
    return std::make_shared<const PrimaryWeight>(std::move(weight));
  }

  // The matrix itself, unquantized.
  absl::StatusOr<std::shared_ptr<const PrimaryWeight>> Keep(const std::string& name,
                                                            MatrixShape shape,
                                                            const PlaneLayout& layout,
                                                            const Nominal& tensor) {
    auto plane = std::make_shared<Plane>();
    plane->layout = layout;
    plane->epoch = number_;
    PW_ASSIGN_OR_RETURN(plane->payload,
                        HostBuffer::AllocateUninitialized(budget_, MemoryUse::kWeights,
                                                          layout.payload_bytes, name));
    if (layout.payload_bytes > 0) {
      std::memcpy(plane->payload.data(), tensor.view.data, layout.payload_bytes);
    }
    PrimaryWeight weight = Identity(name, shape);
    weight.high_precision = std::move(plane);
    return std::make_shared<const PrimaryWeight>(std::move(weight));
  }

  PrimaryWeight Identity(const std::string& name, MatrixShape shape) const {
    PrimaryWeight weight;
    weight.name = name;
    weight.shape = shape;
    weight.nominal = source_.plan.options.nominal;
    weight.epoch = number_;
    return weight;
  }

  // Reads a tensor, rounds it to the nominal type if it is of another, and
  // checks that it is finite if it must be.
  absl::StatusOr<Nominal> ReadNominal(const std::string& name, MatrixShape shape) {
    const InventoryTensor* known = source_.inventory.Find(name);
    const HfTensor* stored =
        known == nullptr ? nullptr : source_.directory.Find(known->source_name);
    if (stored == nullptr) {
      return Error(Reason::kInternal, absl::StrCat("tensor \"", name, "\" was planned but is not "
                                                   "in the checkpoint"));
    }
    PW_ASSIGN_OR_RETURN(HostBuffer source, ReadWhole(*stored));
    Nominal tensor;
    tensor.source_dtype = stored->dtype;
    tensor.view = {source.data(), stored->dtype, shape.out, shape.in};
    const DType nominal = source_.plan.options.nominal;
    if (stored->dtype == nominal) {
      tensor.bytes = std::move(source);
    } else {
      PW_ASSIGN_OR_RETURN(const int64_t size_bytes, SizeBytes(nominal, shape.elements()));
      PW_ASSIGN_OR_RETURN(tensor.bytes,
                          HostBuffer::AllocateUninitialized(budget_, MemoryUse::kTransient,
                                                            size_bytes, name));
      const MutableMatrixView rounded{tensor.bytes.data(), nominal, shape.out, shape.in};
      CastToNominal(tensor.view, rounded);
      tensor.view = rounded;
    }
    PW_RETURN_IF_ERROR(
        CheckFinite(spec_.non_finite, absl::StrCat("tensor \"", name, "\""), tensor.view));
    return tensor;
  }

  absl::StatusOr<HostBuffer> ReadWhole(const HfTensor& tensor) {
    PW_ASSIGN_OR_RETURN(HostBuffer buffer,
                        HostBuffer::AllocateUninitialized(budget_, MemoryUse::kTransient,
                                                          tensor.length, tensor.name));
    for (int64_t offset = 0; offset < tensor.length; offset += kTransferBytes) {
      const int64_t size_bytes = std::min(kTransferBytes, tensor.length - offset);
      PW_RETURN_IF_ERROR(source_.directory.Read(
          tensor, offset,
          buffer.mutable_bytes().subspan(static_cast<size_t>(offset),
                                         static_cast<size_t>(size_bytes))));
      PW_RETURN_IF_ERROR(meter_.Advance(tensor.name, size_bytes));
    }
    return buffer;
  }

  const ModelSource& source_;
  const CreateModelSpec& spec_;
  const WeightVersion number_;
  const Quantizer& quantizer_;
  MemoryBudget& budget_;
  TransferMeter meter_;
};

}  // namespace

absl::StatusOr<ModelVersion> LoadModel(const ModelSource& source, const CreateModelSpec& spec,
                                       WeightVersion number, const Quantizer& quantizer,
                                       MemoryBudget& budget, const TransferControl& control) {
  return Loader(source, spec, number, quantizer, budget, control).Load();
}

}  // namespace planewise
