#ifndef PLANEWISE_PLANNER_MEMORY_MODEL_H_
#define PLANEWISE_PLANNER_MEMORY_MODEL_H_
// The bytes of a hosted model before any is allocated. One object, ModelPlan,
// serves plan, admission, load, describe and verify; each of its numbers comes
// from PlaneLayoutFor, as the allocation does, so the two are equal.
//
// Not here: other choices and what fits (what_if.h); tables and JSON
// (memory_report.h).

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/layer/model_version.h"
#include "core/numeric/dtype.h"
#include "core/recipe/recipe.h"
#include "core/tensor/plane_layout.h"
#include "core/tensor/plane_set.h"
#include "planner/tensor_inventory.h"

namespace planewise {

// What trainers will have in flight at once.
struct SessionLoad {
  int64_t sessions = 0;
  int64_t tokens = 0;               // per session: saved between forward and backward
  int64_t input_window_bytes = 0;   // per session
  int64_t result_budget_bytes = 0;  // per session
  int64_t gemm_workspace_bytes = 0;  // once: operations run one after another

  bool operator==(const SessionLoad&) const = default;
};

struct PlanOptions {
  Recipe recipe;
  PlanePolicy policy = PlanePolicy::kAuto;
  bool backward_enabled = true;
  bool trainable = false;  // is dW wanted
  std::vector<BackwardOverride> future_modes;
  DType nominal = DType::kBF16;     // the type that weights and biases stand for
  DType activation = DType::kBF16;  // of X
  SessionLoad load;

  bool operator==(const PlanOptions&) const = default;
};

// What one session keeps of a layer's X [tokens, in] between forward and
// backward, for each override. All 0 if the model is frozen or takes no
// backward.
//   none            the column plane of X (the row plane where that serves as
//                   both; high-precision recipe: X itself)
//   high_precision  X itself
//   dequantized     the row plane of X
struct SavedOperandBytes {
  int64_t none = 0;
  int64_t high_precision = 0;
  int64_t dequantized = 0;

  int64_t Of(BackwardOverride backward_override) const;
};

struct LayerPlan {
  std::string name;    // module, for example "encoder.layer.0.attention.self.query"
  std::string weight;  // tensor
  MatrixShape shape;
  DType source_dtype = DType::kF32;
  PlaneDecision decision;
  std::vector<PlaneLayout> planes;
  std::optional<PlaneLayout> bias;  // [1, out] in the nominal type
  SavedOperandBytes saved;          // options.load.tokens tokens

  int64_t weight_bytes() const;
  int64_t bias_bytes() const { return bias.has_value() ? bias->total_bytes() : 0; }
  int64_t persistent_bytes() const { return weight_bytes() + bias_bytes(); }
};

struct LocalTensorPlan {
  LocalTensor tensor;
  int64_t source_bytes = 0;  // 0 for a tied tensor: its bytes are another's
};

// Load reads one tensor at a time into a transient buffer of its source bytes,
// converts it into a second one if the source type is not the nominal type,
// and makes the final planes from that; both buffers go before the next tensor.
struct LoadPeak {
  std::string tensor;  // the one with the highest sum
  int64_t source_bytes = 0;
  int64_t cast_bytes = 0;

  int64_t total_bytes() const { return source_bytes + cast_bytes; }
};

struct PlaneTotals {
  int64_t payload_bytes = 0;
  int64_t scale_bytes = 0;
  int64_t state_bytes = 0;

  int64_t total_bytes() const { return payload_bytes + scale_bytes + state_bytes; }
};

struct PlanTotals {
  PlaneTotals row;
  PlaneTotals column;
  PlaneTotals high_precision;  // weights kept unquantized
  int64_t bias_bytes = 0;
  int64_t persistent_bytes = 0;  // the four above
  int64_t saved_operand_bytes = 0;  // all sessions, under the recipe's override
  int64_t transport_bytes = 0;      // all sessions
  int64_t gemm_workspace_bytes = 0;
  int64_t load_peak_bytes = 0;
  // While serving: all but the load peak. While loading: persistent + peak.
  int64_t serving_bytes = 0;
  int64_t loading_bytes = 0;
  int64_t required_bytes = 0;  // the larger of the two
  int64_t local_bytes = 0;     // with the trainer; not part of any sum above
  int64_t hosted_parameters = 0;
  int64_t local_parameters = 0;
  int64_t source_bytes = 0;  // of the hosted tensors: what load reads
};

struct ModelPlan {
  std::string architecture;
  PlanOptions options;
  std::vector<LayerPlan> layers;
  std::vector<LocalTensorPlan> local;
  LoadPeak load_peak;
  PlanTotals totals;
};

// INVALID_ARGUMENT: as CheckRecipe and CheckWeightShape (up to 20 weights that
// break a rule are listed as violations); DTYPE_UNSUPPORTED for a nominal or
// activation type that is not F32, F16 or BF16, and for F16 under nvfp4;
// INVALID_REQUEST for sessions, tokens or bytes below 0; LIMIT_EXCEEDED for sizes
// that overflow.
absl::StatusOr<ModelPlan> PlanModel(const TensorInventory& inventory, const PlanOptions& options);

// Transient bytes that load holds for one tensor; what LoadPeak is the highest of.
absl::StatusOr<LoadPeak> LoadBytes(const InventoryTensor& tensor, DType nominal);

// For X [tokens, in]; see SavedOperandBytes. INVALID_ARGUMENT as PlaneLayoutFor.
absl::StatusOr<SavedOperandBytes> SavedBytes(const PlanOptions& options, int64_t in_features,
                                             int64_t tokens);

}  // namespace planewise

#endif  // PLANEWISE_PLANNER_MEMORY_MODEL_H_
