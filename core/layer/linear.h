#ifndef PLANEWISE_CORE_LAYER_LINEAR_H_
#define PLANEWISE_CORE_LAYER_LINEAR_H_
// Forward and backward of one linear layer on stored planes.
//   forward   Y  = X * W^T + bias     X [tokens, in], W [out, in], Y [tokens, out]
//   backward  dX = dY * W,  dW = dY^T * X,  dbias = column sums of dY
// Planning is pure and refuses before any compute; running does what the plan
// says. Which operand is kept and read under which override: DESIGN table in
// ARCHITECTURE.md, "Modes".
//
// Not here: sessions and versions (service/), GEMMs (core/gemm/).

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/gemm/gemm_path.h"
#include "core/layer/linear_mode.h"
#include "core/layer/model_version.h"
#include "core/quant/quantizer.h"
#include "core/tensor/host_buffer.h"
#include "core/tensor/matrix_view.h"

namespace planewise {

class CpuGemm;  // core/gemm/cpu_gemm.h

// What forward keeps of X. Immutable. Backward uses the recipe, override and
// weight in here, whatever the model's are by then.
struct SavedOperand {
  LinearMode mode;
  std::shared_ptr<const PrimaryWeight> weight;
  bool has_bias = false;
  int64_t tokens = 0;
  DType activation = DType::kBF16;
  // At most one is set; none if dW is not wanted.
  std::optional<HostBuffer> original;    // X as given
  std::shared_ptr<const Plane> row;      // fprop-quantized X, row plane
  std::shared_ptr<const Plane> column;   // quantized X, column plane

  int64_t size_bytes() const;
};

struct LinearForwardPlan {
  LinearMode mode;
  int64_t tokens = 0;
  DType activation = DType::kBF16;
  GemmPath path = GemmPath::kExpanded;  // upper bound: X may force kExpandedFp32
  int64_t saved_bytes = 0;      // kept in MemoryUse::kSavedOperands
  int64_t workspace_bytes = 0;  // peak in MemoryUse::kTransient
  bool save_original_input = false;
  std::string save_original_input_why;  // if not as requested
};

// Resources that compute uses; shared by all layers of a backend.
struct ComputeContext {
  CpuGemm* gemm = nullptr;
  const Quantizer* quantizer = nullptr;
  MemoryBudget* budget = nullptr;
};

// Checks weight, mode and shapes, and says what the forward will cost.
// FAILED_PRECONDITION / COLUMNWISE_MISSING if save_for_backward needs a column
// plane that is neither stored nor derivable, BACKWARD_DISABLED if the model
// takes no backward; INVALID_ARGUMENT for an activation type that is not F32,
// BF16 or F16. Pure. `name` is the layer's, for messages.
absl::StatusOr<LinearForwardPlan> PlanLinearForward(absl::string_view name,
                                                    const PrimaryWeight& weight,
                                                    const LinearMode& mode, int64_t tokens,
                                                    DType activation);

struct LinearForwardOutcome {
  GemmPath path = GemmPath::kExpanded;
  std::shared_ptr<const SavedOperand> saved;  // nullptr unless save_for_backward
};

// x holds X [tokens, in] in plan.activation; it is kept if the plan says so.
// y is [tokens, out] in plan.activation. RESOURCE_EXHAUSTED if memory ends;
// nothing is kept then.
absl::StatusOr<LinearForwardOutcome> RunLinearForward(const ComputeContext& context,
                                                      const LinearForwardPlan& plan,
                                                      const HostedLayer& layer, HostBuffer x,
                                                      MutableMatrixView y);

// The saved operand that a forward in `plan`'s mode would have kept, without
// the forward: for backward with X sent again.
absl::StatusOr<std::shared_ptr<const SavedOperand>> SaveOperand(const ComputeContext& context,
                                                                const LinearForwardPlan& plan,
                                                                const HostedLayer& layer,
                                                                HostBuffer x);

struct LinearGradients {
  bool input = false;
  bool weight = false;
  bool bias = false;
};

struct LinearBackwardPlan {
  LinearGradients wanted;
  GemmPath dgrad_path = GemmPath::kExpanded;
  GemmPath wgrad_path = GemmPath::kExpanded;
  // Peak in MemoryUse::kTransient; an upper bound for a high-precision primary
  // under dequantized, where only the quantized W shows how it is multiplied.
  int64_t workspace_bytes = 0;
};

// FAILED_PRECONDITION / NOT_TRAINABLE if dW is wanted but its operand was not
// saved, COLUMNWISE_MISSING as for forward. dY has the operand's tokens and
// activation type.
absl::StatusOr<LinearBackwardPlan> PlanLinearBackward(absl::string_view name,
                                                      const SavedOperand& operand,
                                                      LinearGradients wanted);

// dy [tokens, out]; dx [tokens, in] in the activation type; dw [out, in] and
// db [1, out] in F32. Views that are not wanted are ignored.
absl::StatusOr<LinearBackwardPlan> RunLinearBackward(const ComputeContext& context,
                                                     const LinearBackwardPlan& plan,
                                                     const SavedOperand& operand, MatrixView dy,
                                                     MutableMatrixView dx, MutableMatrixView dw,
                                                     MutableMatrixView db);

}  // namespace planewise

#endif  // PLANEWISE_CORE_LAYER_LINEAR_H_
