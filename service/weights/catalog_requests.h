#ifndef PLANEWISE_SERVICE_WEIGHTS_CATALOG_REQUESTS_H_
#define PLANEWISE_SERVICE_WEIGHTS_CATALOG_REQUESTS_H_
// What one asks of the model catalog and what it answers: plain values, free of
// proto.
//
// Not here: the catalog itself (model_catalog.h).

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/strong_int.h"
#include "core/checkpoint/model_store.h"
#include "core/layer/model_version.h"
#include "core/tensor/plane_layout.h"
#include "planner/memory_model.h"
#include "planner/mode_switch.h"
#include "service/compute/non_finite_policy.h"

namespace planewise {

enum class ModelState : uint8_t {
  kLoading,
  kServing,
  kDamaged,  // DATA_LOSS in the store; only delete and verify take it
};

struct CreateModelSpec {
  std::string name;
  std::string source_path;
  Recipe recipe;
  PlanePolicy policy = PlanePolicy::kAuto;
  bool backward_enabled = true;
  bool trainable = false;
  std::vector<BackwardOverride> future_modes;
  NonFinitePolicy non_finite = NonFinitePolicy::kReject;
  bool validate_only = false;
  std::string request_id;

  bool operator==(const CreateModelSpec&) const = default;
};

// What `describe` shows: plan beside what the allocator counted.
struct ModelDescription {
  std::string name;
  ModelState state = ModelState::kServing;
  absl::Status damage;  // why kDamaged
  // The newest version; nullptr while loading, if damaged, and for validate_only.
  std::shared_ptr<const ModelVersion> version;
  WeightVersion durable_version;  // 0: never saved
  // The plan that admitted it; nullopt for a model that came from the store.
  std::optional<ModelPlan> plan;
  // Of the newest version, from PlaneLayoutFor alone; per layer in its order,
  // bias apart. After validate_only: of the version that would be made.
  std::vector<int64_t> planned_weight_bytes;
  int64_t planned_bytes = 0;  // with biases
  int64_t planned_load_peak_bytes = 0;
  // What the allocator holds for the newest version, and held at the peak of
  // the load above that.
  int64_t actual_bytes = 0;
  int64_t actual_load_peak_bytes = 0;
  int lease_count = 0;
};

struct ProgressEvent {
  std::string stage;   // "read", "quantize", "save", "verify"
  std::string object;  // the tensor at work
  int64_t done_bytes = 0;
  int64_t total_bytes = 0;
};

// Called on the executor, in order; never after `done`. May be empty.
using ProgressCallback = std::function<void(const ProgressEvent&)>;

// Called on the executor, exactly once; never inside the call that took it.
template <typename T>
using DoneCallback = absl::AnyInvocable<void(absl::StatusOr<T>) &&>;

struct DeleteModelSpec {
  std::string name;
  WeightVersion expected_version;  // 0: any
  bool delete_stored = false;
  std::string request_id;

  bool operator==(const DeleteModelSpec&) const = default;
};

struct DeleteOutcome {
  int64_t freed_bytes = 0;
};

struct ValidationOutcome {
  SwitchValidation validation;
  WeightVersion version;
  Recipe current;
};

struct SwitchSpec {
  std::string name;
  Recipe target;
  std::string fingerprint;
  bool release_unused_planes = false;
  std::string request_id;

  bool operator==(const SwitchSpec&) const = default;
};

struct SaveSpec {
  std::string name;
  std::string request_id;

  bool operator==(const SaveSpec&) const = default;
};

struct SwitchOutcome {
  WeightVersion version;
  int64_t freed_bytes = 0;  // of planes that no version holds any more
  ValidationOutcome validation;
};

struct VerifyOutcome {
  bool ok = false;
  int64_t checked_bytes = 0;  // in memory and on disk
  int64_t tensor_count = 0;
  std::vector<std::string> findings;
};

struct ReadWeightsSpec {
  std::string name;
  WeightVersion version;             // 0: the newest
  // Weights and biases; empty: all, and with `plane` those that store it.
  std::vector<std::string> weights;
  // Exactly one of them.
  std::optional<PlaneKind> plane;
  std::optional<DType> dequantize_to;  // the row plane, or the high-precision one
};

// One array of a weight. Its bytes live as long as `owner`.
struct WeightPart {
  std::string weight;
  WeightVersion version;
  PlaneKind plane = PlaneKind::kRow;
  PlanePart part = PlanePart::kPayload;
  DType dtype = DType::kU8;
  std::vector<int64_t> shape;
  uint64_t checksum = 0;  // XXH3, 64 bits, of the bytes
  absl::Span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
};

// Gives the parts of a ReadWeights one at a time, so that at most one
// dequantized weight is in memory. Holds a lease. All on the executor.
class WeightReader {
 public:
  virtual ~WeightReader() = default;

  // nullopt after the last part. One call at a time. RESOURCE_EXHAUSTED,
  // ABORTED / LEASE_REVOKED.
  virtual void Next(DoneCallback<std::optional<WeightPart>> done) = 0;
};

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_WEIGHTS_CATALOG_REQUESTS_H_
