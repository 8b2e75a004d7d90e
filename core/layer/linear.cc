#include "core/layer/linear.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "core/gemm/cpu_gemm.h"
#include "core/layer/column_sums.h"
#include "core/layer/linear_gemms.h"
#include "core/layer/ready_weight.h"
#include "core/layer/threaded_quantize.h"
#include "core/recipe/recipe_check.h"

namespace planewise {
namespace {

std::string Layer(absl::string_view name) { return absl::StrCat("layer \"", name, "\""); }
std::string Weight(absl::string_view name) { return absl::StrCat("weight \"", name, "\""); }

absl::StatusOr<int64_t> PlaneBytes(PlaneKind kind, int64_t rows, int64_t columns) {
  PW_ASSIGN_OR_RETURN(const PlaneLayout layout,
                      Mxfp8LayoutFor(kind, {rows, columns}, DType::kF8E4M3));
  return layout.total_bytes();
}

absl::Status CheckColumnPlane(absl::string_view name, const PrimaryWeight& weight) {
  if (weight.format == Format::kNone || weight.Fresh(PlaneKind::kColumn) != nullptr) {
    return absl::OkStatus();
  }
  PW_ASSIGN_OR_RETURN(const int64_t bytes,
                      PlaneBytes(PlaneKind::kColumn, weight.shape.out, weight.shape.in));
  const std::string missing =
      absl::StrCat("the column plane of ", Weight(weight.name), " [", weight.shape.out, ", ",
                   weight.shape.in, "] is not stored and cannot be derived from 1-D blocks (",
                   bytes, " bytes)");
  return Error(Reason::kColumnwiseMissing,
               absl::StrCat(Layer(name), ": backward_override=none reads both planes, but ",
                            missing, "; use backward_override=dequantized or high_precision, or "
                                     "switch the model with its master weights"))
      .With("tensor", weight.name)
      .With("requiredBytes", bytes)
      .WithViolation({Reason::kColumnwiseMissing, weight.name, missing});
}

absl::Status CheckStored(absl::string_view name, const PrimaryWeight& weight) {
  const PlaneKind kind =
      weight.format == Format::kNone ? PlaneKind::kHighPrecision : PlaneKind::kRow;
  if (weight.Fresh(kind) != nullptr) return absl::OkStatus();
  return Error(Reason::kUninitialized,
               absl::StrCat(Layer(name), ": ", Weight(weight.name), " has no ", Name(kind),
                            " plane of its version; commit or load the model first"))
      .With("tensor", weight.name);
}

absl::Status CheckRequest(absl::string_view name, const LinearMode& mode, int64_t tokens,
                          DType activation) {
  absl::Status status = CheckRecipe(mode.recipe);
  if (!status.ok()) return Annotate(status, Layer(name));
  if (!ComputesLinear(mode.recipe)) {
    return Error(Reason::kNotSupported,
                 absl::StrCat(Layer(name), ": recipe ", mode.recipe.ToString(), " is hosted, but "
                              "this build does not multiply its planes; load the model with "
                              "recipe mxfp8 (1-D blocks) or none to compute with it"));
  }
  if (!IsHighPrecision(activation)) {
    return Error(Reason::kDtypeUnsupported,
                 absl::StrCat(Layer(name), ": activations of ", Name(activation),
                              "; required F32, BF16 or F16"));
  }
  if (tokens < 0) {
    return Error(Reason::kShapeMismatch, absl::StrCat(Layer(name), ": ", tokens, " tokens"));
  }
  return absl::OkStatus();
}

absl::Status CheckWeight(absl::string_view name, const PrimaryWeight& weight,
                         const Recipe& recipe) {
  if (weight.format != Format::kNone && recipe.quantized() && weight.format != recipe.format) {
    return Error(Reason::kRecipeMismatch,
                 absl::StrCat(Layer(name), ": ", Weight(weight.name), " is stored as ",
                              Name(weight.format), ", the recipe is ", recipe.ToString(),
                              "; use a recipe of the stored format, or switch the model"))
        .With("tensor", weight.name);
  }
  PW_RETURN_IF_ERROR(CheckWeightShape(recipe, weight.name, weight.shape));
  return CheckStored(name, weight);
}

absl::Status CheckBackwardAllowed(absl::string_view name, const PrimaryWeight& weight,
                                  const LinearMode& mode) {
  if (!mode.backward_enabled) {
    return Error(Reason::kBackwardDisabled,
                 absl::StrCat(Layer(name), ": the forward is to be followed by a backward, but "
                                           "the model has backward_enabled=false; create it with "
                                           "backward_enabled=true, or do not save for backward"));
  }
  return QuantizesBackward(mode.recipe) ? CheckColumnPlane(name, weight) : absl::OkStatus();
}

absl::Status CheckMatrix(absl::string_view subject, absl::string_view what, MatrixView matrix,
                         int64_t rows, int64_t columns, DType dtype) {
  if (matrix.rows == rows && matrix.columns == columns && matrix.dtype == dtype) {
    return absl::OkStatus();
  }
  return Error(Reason::kShapeMismatch,
               absl::StrCat(subject, ": ", what, " is [", matrix.rows, ", ", matrix.columns, "] ",
                            Name(matrix.dtype), "; required [", rows, ", ", columns, "] ",
                            Name(dtype)));
}

// X [tokens, in] as the plan says that it is.
absl::StatusOr<MatrixView> ViewInput(const LinearForwardPlan& plan, const HostedLayer& layer,
                                     const HostBuffer& x) {
  const int64_t in = layer.weight->shape.in;
  PW_ASSIGN_OR_RETURN(const int64_t elements, CheckedMultiply(plan.tokens, in));
  PW_ASSIGN_OR_RETURN(const int64_t required, SizeBytes(plan.activation, elements));
  if (x.size_bytes() != required) {
    return Error(Reason::kShapeMismatch,
                 absl::StrCat(Layer(layer.name), ": X has ", x.size_bytes(), " bytes; required ",
                              required, " for [", plan.tokens, ", ", in, "] ",
                              Name(plan.activation)));
  }
  return MatrixView{x.data(), plan.activation, plan.tokens, in};
}

MatrixView BiasOf(const HostedLayer& layer) {
  if (layer.bias == nullptr) return {};
  const Plane& plane = *layer.bias->high_precision;
  return {plane.payload.data(), layer.bias->nominal, 1, layer.bias->shape.elements()};
}

GemmOperand Dense(MatrixView matrix) { return {matrix, {}, {}}; }
GemmOperand Codes(const Plane& plane) { return {{}, SpanOf(plane), plane.exponents}; }

// The planes of X: the row plane if the GEMM is to read it, and what is saved,
// charged to where it will stay.
absl::StatusOr<QuantizedPlanes> QuantizeInput(const ComputeContext& context,
                                              const LinearForwardPlan& plan, MatrixView x,
                                              bool multiplies, absl::string_view name) {
  const SavedInput saved = DecideSavedInput(plan.mode).what;
  PlaneUses uses;
  if (multiplies && plan.mode.recipe.quantized()) uses.row = MemoryUse::kTransient;
  if (saved == SavedInput::kRowPlane) uses.row = MemoryUse::kSavedOperands;
  if (saved == SavedInput::kColumnPlane) uses.column = MemoryUse::kSavedOperands;
  return QuantizeOnThreads(*context.quantizer, context.gemm->pool(), *context.budget, x,
                           QuantizeSpecFor(plan.mode.recipe, OperandRole::kActivation), uses,
                           absl::StrCat("X of ", Layer(name)));
}

std::shared_ptr<const SavedOperand> Save(const LinearForwardPlan& plan, const HostedLayer& layer,
                                         const QuantizedPlanes& planes, HostBuffer x) {
  const SavedInput what = DecideSavedInput(plan.mode).what;
  auto saved = std::make_shared<SavedOperand>();
  saved->mode = plan.mode;
  saved->weight = layer.weight;
  saved->has_bias = layer.bias != nullptr;
  saved->tokens = plan.tokens;
  saved->activation = plan.activation;
  if (what == SavedInput::kOriginal) {
    x.ChargeTo(MemoryUse::kSavedOperands);
    saved->original = std::move(x);
  }
  if (what == SavedInput::kRowPlane) saved->row = planes.row;
  if (what == SavedInput::kColumnPlane) saved->column = planes.column;
  return saved;
}

// The problems of a backward. `w` are the exponents of W's values, as far as
// they are known.
GemmProblem InputGradientOf(const SavedOperand& operand, std::optional<ExponentRange> w) {
  return InputGradientProblem(*operand.weight, operand.mode.recipe, operand.tokens,
                              operand.activation, w);
}

GemmProblem WeightGradientOf(const SavedOperand& operand) {
  return WeightGradientProblem(*operand.weight, operand.mode.recipe, operand.tokens,
                               operand.activation,
                               operand.row != nullptr ? operand.row->exponents : std::nullopt);
}

// dY's planes, as the gradients need them; none where dY is not quantized.
absl::StatusOr<QuantizedPlanes> QuantizeGradient(const ComputeContext& context,
                                                 const SavedOperand& operand,
                                                 LinearGradients wanted, MatrixView dy) {
  PlaneUses uses;
  if (QuantizesBackward(operand.mode.recipe)) {
    if (wanted.input) uses.row = MemoryUse::kTransient;
    if (wanted.weight) uses.column = MemoryUse::kTransient;
  }
  return QuantizeOnThreads(*context.quantizer, context.gemm->pool(), *context.budget, dy,
                           QuantizeSpecFor(operand.mode.recipe, OperandRole::kGradient), uses,
                           absl::StrCat("dY of ", Weight(operand.weight->name)));
}

absl::StatusOr<GemmPath> RunInputGradient(const ComputeContext& context,
                                          const SavedOperand& operand, const GemmOperand& dy,
                                          MutableMatrixView dx) {
  const WeightOperand form = WeightOfInputGradient(*operand.weight, operand.mode.recipe);
  PW_ASSIGN_OR_RETURN(const ReadyWeight w,
                      PrepareWeight(*context.quantizer, context.gemm->pool(), *context.budget,
                                    *operand.weight, form, operand.mode.recipe));
  return context.gemm->Run(InputGradientOf(operand, w.operand.exponents), dy, w.operand,
                           MatrixView(), dx, *context.budget);
}

absl::StatusOr<GemmPath> RunWeightGradient(const ComputeContext& context,
                                           const SavedOperand& operand, const GemmOperand& dy,
                                           MutableMatrixView dw) {
  GemmOperand x;
  std::shared_ptr<const Plane> made;
  if (operand.original) {
    const MatrixView original = {operand.original->data(), operand.activation, operand.tokens,
                                 operand.weight->shape.in};
    x = Dense(original);
    if (QuantizesBackward(operand.mode.recipe)) {
      PW_ASSIGN_OR_RETURN(
          const QuantizedPlanes planes,
          QuantizeOnThreads(*context.quantizer, context.gemm->pool(), *context.budget, original,
                            QuantizeSpecFor(operand.mode.recipe, OperandRole::kActivation),
                            {.row = {}, .column = MemoryUse::kTransient},
                            absl::StrCat("X of ", Weight(operand.weight->name))));
      made = planes.column;
      x = Codes(*made);
    }
  } else {
    x = Codes(operand.row != nullptr ? *operand.row : *operand.column);
  }
  return context.gemm->Run(WeightGradientOf(operand), dy, x, MatrixView(), dw, *context.budget);
}

}  // namespace

int64_t SavedOperand::size_bytes() const {
  int64_t total = original ? original->size_bytes() : 0;
  for (const Plane* plane : {row.get(), column.get()}) {
    if (plane != nullptr) total += plane->layout.total_bytes();
  }
  return total;
}

absl::StatusOr<LinearForwardPlan> PlanLinearForward(absl::string_view name,
                                                    const PrimaryWeight& weight,
                                                    const LinearMode& mode, int64_t tokens,
                                                    DType activation) {
  PW_RETURN_IF_ERROR(CheckRequest(name, mode, tokens, activation));
  PW_RETURN_IF_ERROR(CheckWeight(name, weight, mode.recipe));
  if (mode.save_for_backward) PW_RETURN_IF_ERROR(CheckBackwardAllowed(name, weight, mode));

  const SaveDecision save = DecideSavedInput(mode);
  LinearForwardPlan plan;
  plan.mode = mode;
  plan.tokens = tokens;
  plan.activation = activation;
  plan.path = mode.recipe.quantized() ? GemmPath::kExpanded : GemmPath::kHighPrecision;
  plan.save_original_input = save.save_original_input();
  plan.save_original_input_why = save.why;
  PW_ASSIGN_OR_RETURN(plan.saved_bytes,
                      SavedInputBytes(save.what, tokens, weight.shape.in, activation));
  if (tokens == 0) return plan;

  const WeightOperand form = WeightOfForward(weight, mode.recipe);
  const GemmProblem problem =
      ForwardProblem(weight, mode.recipe, tokens, activation, KnownExponents(weight, form));
  PW_ASSIGN_OR_RETURN(plan.workspace_bytes, MadeWeightBytes(weight, form, mode.recipe));
  plan.workspace_bytes += CpuGemm::WorkspaceBytes(problem);
  if (mode.recipe.quantized() && save.what != SavedInput::kRowPlane) {
    PW_ASSIGN_OR_RETURN(const int64_t x_bytes,
                        PlaneBytes(PlaneKind::kRow, tokens, weight.shape.in));
    plan.workspace_bytes += x_bytes;
  }
  return plan;
}

absl::StatusOr<LinearForwardOutcome> RunLinearForward(const ComputeContext& context,
                                                      const LinearForwardPlan& plan,
                                                      const HostedLayer& layer, HostBuffer x,
                                                      MutableMatrixView y) {
  const PrimaryWeight& weight = *layer.weight;
  const Recipe& recipe = plan.mode.recipe;
  PW_ASSIGN_OR_RETURN(const MatrixView x_view, ViewInput(plan, layer, x));
  PW_RETURN_IF_ERROR(
      CheckMatrix(Layer(layer.name), "Y", y, plan.tokens, weight.shape.out, plan.activation));
  PW_ASSIGN_OR_RETURN(const QuantizedPlanes planes,
                      QuantizeInput(context, plan, x_view, plan.tokens > 0, layer.name));

  LinearForwardOutcome outcome;
  outcome.path = plan.path;
  if (plan.tokens > 0) {
    PW_ASSIGN_OR_RETURN(const ReadyWeight w,
                        PrepareWeight(*context.quantizer, context.gemm->pool(), *context.budget,
                                      weight, WeightOfForward(weight, recipe), recipe));
    const GemmProblem problem =
        ForwardProblem(weight, recipe, plan.tokens, plan.activation, w.operand.exponents);
    const GemmOperand a = recipe.quantized() ? Codes(*planes.row) : Dense(x_view);
    PW_ASSIGN_OR_RETURN(outcome.path, context.gemm->Run(problem, a, w.operand, BiasOf(layer), y,
                                                        *context.budget));
  }
  if (plan.mode.save_for_backward) outcome.saved = Save(plan, layer, planes, std::move(x));
  return outcome;
}

absl::StatusOr<std::shared_ptr<const SavedOperand>> SaveOperand(const ComputeContext& context,
                                                                const LinearForwardPlan& plan,
                                                                const HostedLayer& layer,
                                                                HostBuffer x) {
  if (!plan.mode.save_for_backward) {
    return Error(Reason::kInvalidRequest,
                 absl::StrCat(Layer(layer.name),
                              ": a forward in this mode keeps nothing for a backward"));
  }
  PW_ASSIGN_OR_RETURN(const MatrixView x_view, ViewInput(plan, layer, x));
  PW_ASSIGN_OR_RETURN(const QuantizedPlanes planes,
                      QuantizeInput(context, plan, x_view, false, layer.name));
  return Save(plan, layer, planes, std::move(x));
}

absl::StatusOr<LinearBackwardPlan> PlanLinearBackward(absl::string_view name,
                                                      const SavedOperand& operand,
                                                      LinearGradients wanted) {
  const PrimaryWeight& weight = *operand.weight;
  const Recipe& recipe = operand.mode.recipe;
  if (wanted.weight && DecideSavedInput(operand.mode).what == SavedInput::kNothing) {
    return Error(Reason::kNotTrainable,
                 absl::StrCat(Layer(name), ": dW is wanted, but the forward kept no X for it; run "
                                           "the forward with weight_gradient=true"));
  }
  if (wanted.bias && !operand.has_bias) {
    return Error(Reason::kInvalidRequest,
                 absl::StrCat(Layer(name), ": the gradient of a bias is wanted, but the layer has "
                                           "none"));
  }
  const bool quantized = QuantizesBackward(recipe);
  if (wanted.input && quantized) PW_RETURN_IF_ERROR(CheckColumnPlane(name, weight));

  LinearBackwardPlan plan;
  plan.wanted = wanted;
  plan.dgrad_path = plan.wgrad_path =
      quantized ? GemmPath::kExpanded : GemmPath::kHighPrecision;
  if (operand.tokens == 0) return plan;

  // dY's row plane goes when dX is done; its column plane lives through both.
  int64_t row_bytes = 0;
  int64_t column_bytes = 0;
  int64_t x_bytes = 0;
  if (quantized && wanted.input) {
    PW_ASSIGN_OR_RETURN(row_bytes, PlaneBytes(PlaneKind::kRow, operand.tokens, weight.shape.out));
  }
  if (quantized && wanted.weight) {
    PW_ASSIGN_OR_RETURN(column_bytes,
                        PlaneBytes(PlaneKind::kColumn, operand.tokens, weight.shape.out));
    if (operand.original) {
      PW_ASSIGN_OR_RETURN(x_bytes,
                          PlaneBytes(PlaneKind::kColumn, operand.tokens, weight.shape.in));
    }
  }
  plan.workspace_bytes = row_bytes + column_bytes;
  if (wanted.input) {
    const WeightOperand form = WeightOfInputGradient(weight, recipe);
    PW_ASSIGN_OR_RETURN(const int64_t w_bytes, MadeWeightBytes(weight, form, recipe));
    plan.workspace_bytes +=
        w_bytes + CpuGemm::WorkspaceBytes(InputGradientOf(operand, KnownExponents(weight, form)));
  }
  if (wanted.weight) {
    const int64_t while_dw =
        column_bytes + x_bytes + CpuGemm::WorkspaceBytes(WeightGradientOf(operand));
    plan.workspace_bytes = std::max(plan.workspace_bytes, while_dw);
  }
  return plan;
}

absl::StatusOr<LinearBackwardPlan> RunLinearBackward(const ComputeContext& context,
                                                     const LinearBackwardPlan& plan,
                                                     const SavedOperand& operand, MatrixView dy,
                                                     MutableMatrixView dx, MutableMatrixView dw,
                                                     MutableMatrixView db) {
  const PrimaryWeight& weight = *operand.weight;
  const auto [out, in] = weight.shape;
  const LinearGradients wanted = plan.wanted;
  const std::string subject = Weight(weight.name);
  PW_RETURN_IF_ERROR(CheckMatrix(subject, "dY", dy, operand.tokens, out, operand.activation));
  if (wanted.input) {
    PW_RETURN_IF_ERROR(CheckMatrix(subject, "dX", dx, operand.tokens, in, operand.activation));
  }
  if (wanted.weight) PW_RETURN_IF_ERROR(CheckMatrix(subject, "dW", dw, out, in, DType::kF32));
  if (wanted.bias) PW_RETURN_IF_ERROR(CheckMatrix(subject, "db", db, 1, out, DType::kF32));

  LinearBackwardPlan done = plan;
  if (wanted.bias) SumColumns(context.gemm->pool(), dy, static_cast<float*>(db.data));
  if (operand.tokens == 0) {
    if (wanted.weight) std::fill_n(static_cast<float*>(dw.data), dw.elements(), 0.0f);
    return done;
  }
  PW_ASSIGN_OR_RETURN(QuantizedPlanes planes, QuantizeGradient(context, operand, wanted, dy));
  if (wanted.input) {
    const GemmOperand a = planes.row != nullptr ? Codes(*planes.row) : Dense(dy);
    PW_ASSIGN_OR_RETURN(done.dgrad_path, RunInputGradient(context, operand, a, dx));
    planes.row.reset();
  }
  if (wanted.weight) {
    const GemmOperand a = planes.column != nullptr ? Codes(*planes.column) : Dense(dy);
    PW_ASSIGN_OR_RETURN(done.wgrad_path, RunWeightGradient(context, operand, a, dw));
  }
  return done;
}

}  // namespace planewise
