#include "planner/memory_model.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "core/quant/quantize_spec.h"
#include "core/recipe/recipe_check.h"
#include "planner/plane_decision.h"

namespace planewise {
namespace {

// More would not fit into the trailers of a gRPC reply.
constexpr size_t kListedViolationsMax = 20;

absl::Status CheckOptions(const PlanOptions& options) {
  PW_RETURN_IF_ERROR(CheckRecipe(options.recipe));
  for (const DType dtype : {options.nominal, options.activation}) {
    if (!IsHighPrecision(dtype)) {
      return Error(Reason::kDtypeUnsupported,
                   absl::StrCat("weights or activations of ", Name(dtype),
                                "; required F32, F16 or BF16"));
    }
    if (options.recipe.format == Format::kNvfp4 && dtype == DType::kF16) {
      return Error(Reason::kDtypeUnsupported,
                   "nvfp4 with weights or activations of F16; required F32 or BF16");
    }
  }
  const SessionLoad& load = options.load;
  const std::pair<absl::string_view, int64_t> values[] = {
      {"sessions", load.sessions},
      {"tokens", load.tokens},
      {"input_window_bytes", load.input_window_bytes},
      {"result_budget_bytes", load.result_budget_bytes},
      {"gemm_workspace_bytes", load.gemm_workspace_bytes}};
  for (const auto& [name, value] : values) {
    if (value >= 0) continue;
    return Error(Reason::kInvalidRequest, absl::StrCat(name, " is ", value, "; required >= 0"));
  }
  return absl::OkStatus();
}

// All hosted weights at once: a model is refused with every weight that breaks
// a rule, not with the first.
absl::Status CheckShapes(const TensorInventory& inventory, const Recipe& recipe) {
  absl::Status first;
  ErrorDetails details;
  int64_t weights = 0;
  for (const InventoryTensor& tensor : inventory.tensors) {
    if (!tensor.hosted || tensor.role != TensorRole::kLinearWeight) continue;
    const absl::Status status =
        CheckWeightShape(recipe, tensor.name, {tensor.shape[0], tensor.shape[1]});
    if (status.ok()) continue;
    const std::optional<ErrorDetails> broken = DetailsOf(status);
    if (++weights == 1) {
      first = status;
      details = *broken;
    } else if (details.violations.size() < kListedViolationsMax) {
      details.violations.insert(details.violations.end(), broken->violations.begin(),
                                broken->violations.end());
    }
  }
  if (weights <= 1) return first;
  return StatusFromDetails(first.code(),
                           absl::StrCat(first.message(), " (and ", weights - 1, " more weights)"),
                           details);
}

absl::StatusOr<LayerPlan> PlanLayer(const InventoryTensor& weight, bool has_bias,
                                    const PlanOptions& options) {
  LayerPlan plan;
  plan.name = weight.layer;
  plan.weight = weight.name;
  plan.shape = {weight.shape[0], weight.shape[1]};
  plan.source_dtype = weight.dtype;
  PW_ASSIGN_OR_RETURN(plan.decision,
                      DecidePlanes({options.recipe, options.backward_enabled, options.policy,
                                    options.future_modes, plan.shape, options.nominal}));
  PW_ASSIGN_OR_RETURN(plan.planes,
                      LayoutsOf(plan.decision, options.recipe, plan.shape, options.nominal));
  if (has_bias) {
    PW_ASSIGN_OR_RETURN(plan.bias,
                        PlaneLayoutFor(Format::kNone, BlockGeometry::k1D,
                                       PlaneKind::kHighPrecision, {1, plan.shape.out},
                                       options.nominal));
  }
  PW_ASSIGN_OR_RETURN(plan.saved, SavedBytes(options, plan.shape.in, options.load.tokens));
  return plan;
}

void AddPlane(const PlaneLayout& plane, PlanTotals& totals) {
  PlaneTotals& sum = plane.kind == PlaneKind::kRow      ? totals.row
                     : plane.kind == PlaneKind::kColumn ? totals.column
                                                        : totals.high_precision;
  sum.payload_bytes += plane.payload_bytes;
  sum.scale_bytes += plane.scale_bytes;
  sum.state_bytes += plane.state_bytes;
}

// What is known of the weights cannot overflow (model_config.h bounds it);
// what sessions ask for can.
absl::Status AddUp(ModelPlan& plan) {
  PlanTotals& totals = plan.totals;
  const SessionLoad& load = plan.options.load;
  int64_t saved_per_session = 0;
  for (const LayerPlan& layer : plan.layers) {
    for (const PlaneLayout& plane : layer.planes) AddPlane(plane, totals);
    totals.bias_bytes += layer.bias_bytes();
    PW_ASSIGN_OR_RETURN(saved_per_session,
                        CheckedAdd(saved_per_session,
                                   layer.saved.Of(plan.options.recipe.backward_override)));
  }
  totals.persistent_bytes = totals.row.total_bytes() + totals.column.total_bytes() +
                            totals.high_precision.total_bytes() + totals.bias_bytes;
  totals.load_peak_bytes = plan.load_peak.total_bytes();
  totals.gemm_workspace_bytes = load.gemm_workspace_bytes;
  PW_ASSIGN_OR_RETURN(totals.saved_operand_bytes,
                      CheckedMultiply(load.sessions, saved_per_session));
  PW_ASSIGN_OR_RETURN(const int64_t transport,
                      CheckedAdd(load.input_window_bytes, load.result_budget_bytes));
  PW_ASSIGN_OR_RETURN(totals.transport_bytes, CheckedMultiply(load.sessions, transport));
  totals.serving_bytes = totals.persistent_bytes;
  for (const int64_t bytes :
       {totals.saved_operand_bytes, totals.transport_bytes, totals.gemm_workspace_bytes}) {
    PW_ASSIGN_OR_RETURN(totals.serving_bytes, CheckedAdd(totals.serving_bytes, bytes));
  }
  totals.loading_bytes = totals.persistent_bytes + totals.load_peak_bytes;
  totals.required_bytes = std::max(totals.serving_bytes, totals.loading_bytes);
  return absl::OkStatus();
}

void AddLocal(const InventoryTensor& tensor, ModelPlan& plan) {
  LocalTensorPlan local;
  local.tensor = {tensor.name, tensor.shape, tensor.why_local};
  if (tensor.tied_to.empty()) {
    local.source_bytes = tensor.source_bytes();
    plan.totals.local_bytes += local.source_bytes;
    plan.totals.local_parameters += tensor.elements();
  }
  plan.local.push_back(std::move(local));
}

}  // namespace

int64_t SavedOperandBytes::Of(BackwardOverride backward_override) const {
  switch (backward_override) {
    case BackwardOverride::kNone: return none;
    case BackwardOverride::kHighPrecision: return high_precision;
    case BackwardOverride::kDequantized: return dequantized;
  }
  return 0;
}

int64_t LayerPlan::weight_bytes() const { return TotalBytes(planes); }

absl::StatusOr<LoadPeak> LoadBytes(const InventoryTensor& tensor, DType nominal) {
  LoadPeak load;
  load.tensor = tensor.name;
  PW_ASSIGN_OR_RETURN(load.source_bytes, SizeBytes(tensor.dtype, tensor.elements()));
  if (tensor.dtype != nominal) {
    PW_ASSIGN_OR_RETURN(load.cast_bytes, SizeBytes(nominal, tensor.elements()));
  }
  return load;
}

absl::StatusOr<SavedOperandBytes> SavedBytes(const PlanOptions& options, int64_t in_features,
                                             int64_t tokens) {
  SavedOperandBytes saved;
  if (!options.trainable || !options.backward_enabled) return saved;
  const MatrixShape shape{tokens, in_features};
  PW_ASSIGN_OR_RETURN(const PlaneLayout original,
                      PlaneLayoutFor(Format::kNone, BlockGeometry::k1D,
                                     PlaneKind::kHighPrecision, shape, options.activation));
  if (!options.recipe.quantized()) {
    saved.none = original.total_bytes();
    return saved;
  }
  const QuantizeSpec spec = QuantizeSpecFor(options.recipe, OperandRole::kActivation);
  PW_ASSIGN_OR_RETURN(const PlaneLayout row, LayoutFor(spec, PlaneKind::kRow, shape));
  PW_ASSIGN_OR_RETURN(const PlaneLayout column, LayoutFor(spec, PlaneKind::kColumn, shape));
  // Where the column plane has nothing of its own, the row plane serves as it.
  saved.none = column.shares_row_payload ? row.total_bytes() : column.total_bytes();
  saved.high_precision = original.total_bytes();
  saved.dequantized = row.total_bytes();
  return saved;
}

absl::StatusOr<ModelPlan> PlanModel(const TensorInventory& inventory, const PlanOptions& options) {
  PW_RETURN_IF_ERROR(CheckOptions(options));
  PW_RETURN_IF_ERROR(CheckShapes(inventory, options.recipe));
  ModelPlan plan;
  plan.architecture = inventory.architecture;
  plan.options = options;
  for (size_t i = 0; i < inventory.tensors.size(); ++i) {
    const InventoryTensor& tensor = inventory.tensors[i];
    if (!tensor.hosted) {
      AddLocal(tensor, plan);
      continue;
    }
    PW_ASSIGN_OR_RETURN(LoadPeak load, LoadBytes(tensor, options.nominal));
    if (load.total_bytes() > plan.load_peak.total_bytes()) plan.load_peak = std::move(load);
    plan.totals.hosted_parameters += tensor.elements();
    plan.totals.source_bytes += tensor.source_bytes();
    if (tensor.role != TensorRole::kLinearWeight) continue;
    // A layer's bias comes directly after its weight.
    const InventoryTensor* next =
        i + 1 < inventory.tensors.size() ? &inventory.tensors[i + 1] : nullptr;
    const bool has_bias = next != nullptr && next->role == TensorRole::kLinearBias &&
                          next->layer == tensor.layer;
    PW_ASSIGN_OR_RETURN(plan.layers.emplace_back(),
                        PlanLayer(tensor, has_bias, options));
  }
  PW_RETURN_IF_ERROR(AddUp(plan));
  return plan;
}

}  // namespace planewise
