#ifndef PLANEWISE_SERVICE_WEIGHTS_MODEL_CATALOG_H_
#define PLANEWISE_SERVICE_WEIGHTS_MODEL_CATALOG_H_
// The hosted models: create, describe, list, delete, validate and switch
// modes, save, verify, lease. Values in, values out; no proto, no gRPC.
//
// Invariants, cited by tests:
//  1. A model is visible to readers whole or not at all.
//  2. A failed create, switch or save leaves everything as it was, bytes too.
//  3. A version number is never used twice for a model name, also after a
//     crash (the store keeps the high-water mark).
//  4. Memory is admitted from the plan before anything is read or allocated;
//     after load, actual bytes of weights equal planned bytes.
//  5. A leased version's bytes stay until the last lease ends.
//
// Not here: sessions (service/session/), RPC (service/rpc/), bytes on disk
// (core/checkpoint/).

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "core/layer/model_version.h"
#include "planner/memory_model.h"
#include "planner/mode_switch.h"

namespace planewise {

// Who asks. In every request from the first day; tenants come later.
struct Principal {
  std::string name;  // for example "unix:1000" or "token"
};

enum class NonFinitePolicy : uint8_t { kFormat, kReject };

enum class ModelState : uint8_t { kLoading, kServing, kDamaged };

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
};

// What `describe` shows: plan beside what the allocator counted.
struct ModelDescription {
  ModelState state = ModelState::kServing;
  std::shared_ptr<const ModelVersion> version;  // nullptr while loading
  std::string name;
  WeightVersion durable_version;
  ModelPlan plan;
  int64_t actual_bytes = 0;
  int64_t actual_load_peak_bytes = 0;
  int lease_count = 0;
  absl::Status damage;  // why kDamaged
};

struct ProgressEvent {
  std::string stage;
  std::string object;
  int64_t done_bytes = 0;
  int64_t total_bytes = 0;
};

// Called on the executor, in order; never after `done`.
using ProgressCallback = std::function<void(const ProgressEvent&)>;
template <typename T>
using DoneCallback = absl::AnyInvocable<void(absl::StatusOr<T>) &&>;

struct SaveOutcome {
  WeightVersion version;
  int64_t written_bytes = 0;
  bool written = false;
  std::string path;
};

struct VerifyOutcome {
  bool ok = false;
  int64_t checked_bytes = 0;
  int64_t tensor_count = 0;
  std::vector<std::string> findings;
};

struct SwitchSpec {
  std::string name;
  Recipe target;
  std::string fingerprint;
  bool release_unused_planes = false;
  std::string request_id;
};

struct SwitchOutcome {
  WeightVersion version;
  int64_t freed_bytes = 0;
  SwitchValidation validation;
};

// Cancels a long operation at its next safe point. Thread-safe.
class Cancellation;

// Pins one version of a model. Movable; ends when destroyed, on the executor.
class WeightLease {
 public:
  WeightLease() = default;
  WeightLease(WeightLease&&) noexcept;
  WeightLease& operator=(WeightLease&&) noexcept;
  ~WeightLease();

  bool valid() const { return version_ != nullptr; }
  const ModelVersion& operator*() const { return *version_; }
  const ModelVersion* operator->() const { return version_.get(); }
  const std::shared_ptr<const ModelVersion>& version() const { return version_; }

 private:
  friend class ModelCatalog;
  std::shared_ptr<const ModelVersion> version_;
  absl::AnyInvocable<void() &&> release_;
};

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_WEIGHTS_MODEL_CATALOG_H_
