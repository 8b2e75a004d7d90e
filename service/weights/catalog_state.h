#ifndef PLANEWISE_SERVICE_WEIGHTS_CATALOG_STATE_H_
#define PLANEWISE_SERVICE_WEIGHTS_CATALOG_STATE_H_
// What the operations of the model catalog share: the models, and who may
// change them.
//
// Not here: the operations (create_model.h, switch_model.h, stored_models.h,
// verify_model.h); for users: model_catalog.h.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/strong_int.h"
#include "core/checkpoint/live_checksums.h"
#include "planner/memory_model.h"
#include "planner/switch_snapshot.h"
#include "service/auth/principal.h"
#include "service/schedule/work_admission.h"
#include "service/store/version_numbers.h"
#include "service/weights/catalog_job.h"
#include "service/weights/catalog_options.h"
#include "service/weights/catalog_requests.h"
#include "service/weights/request_log.h"
#include "service/weights/running_requests.h"
#include "service/weights/version_store.h"

namespace planewise {

// Checksums of a version's bytes, taken when they were made.
using RecordedChecksums = std::shared_ptr<const std::vector<LiveChecksum>>;

struct ModelEntry {
  ModelState state = ModelState::kLoading;
  absl::Status damage;
  // Why nobody may switch, save or delete it now, for example "being switched";
  // empty if somebody may.
  std::string busy;
  std::unique_ptr<VersionStore> versions;  // nullptr unless kServing
  RecordedChecksums checksums;             // of the newest version
  WeightVersion durable_version;
  std::optional<ModelPlan> plan;
  int64_t actual_load_peak_bytes = 0;
};

// One thread, but for `numbers`, which is the storage lane's. Shared by running
// operations, so it lives until the last of them has ended.
struct CatalogState {
  CatalogState(CatalogResources resources, CatalogOptions options);

  // The model. NOT_FOUND.
  absl::StatusOr<ModelEntry*> Find(absl::string_view name);
  // The model, if it has a version. FAILED_PRECONDITION / MODEL_BUSY while it
  // loads, DATA_LOSS if it is damaged.
  absl::StatusOr<ModelEntry*> FindServing(absl::string_view name);
  // The same, if nobody is changing it: MODEL_BUSY.
  absl::StatusOr<ModelEntry*> FindChangeable(absl::string_view name);

  ModelDescription Describe(const std::string& name, const ModelEntry& entry) const;
  SwitchSnapshot SnapshotOf(const ModelEntry& entry) const;

  // Takes the name for a model that is being created.
  void Reserve(const std::string& name);
  // Makes `entry` serve `version`; its plan and peaks are set by the caller.
  void Serve(const std::string& name, ModelEntry& entry, ModelVersion version,
             RecordedChecksums checksums);
  void MarkDamaged(const std::string& name, absl::Status damage);
  void Remove(const std::string& name);

  // The key of a request in a log. INVALID_ARGUMENT / LIMIT_EXCEEDED for an id
  // that is too long; empty without an id.
  absl::StatusOr<std::string> RequestKey(const Principal& principal,
                                         const std::string& request_id) const;

  JobTicket NewTicket(std::shared_ptr<AbandonableJob> job);
  // Answers as a task on the executor.
  template <typename T>
  void Answer(DoneCallback<T> done, absl::StatusOr<T> result) {
    resources.executor->Post([done = std::move(done), result = std::move(result)]() mutable {
      std::move(done)(std::move(result));
    });
  }

  const CatalogResources resources;
  const CatalogOptions options;
  WorkAdmission jobs;
  VersionNumbers numbers;
  std::map<std::string, ModelEntry, std::less<>> models;

  uint64_t next_ticket = 1;
  std::map<JobTicket, std::weak_ptr<AbandonableJob>> tickets;

  RunningRequests<CreateModelSpec, ModelDescription> creating;
  RunningRequests<SwitchSpec, SwitchOutcome> switching;
  RunningRequests<SaveSpec, SaveOutcome> saving;
  RequestLog<CreateModelSpec, std::string> created;  // the name
  RequestLog<SwitchSpec, SwitchOutcome> switched;
  RequestLog<SaveSpec, SaveOutcome> saved;
  RequestLog<DeleteModelSpec, DeleteOutcome> deleted;

 private:
  void Announce(const std::string& name, std::optional<ModelState> state) const;
};

// Bytes of each layer's weight as its recorded decision says, from PlaneLayoutFor
// alone: what the allocator's count is held against.
std::vector<int64_t> PlannedWeightBytes(const ModelVersion& version);

// The same with biases, of the whole version.
int64_t PlannedBytes(const ModelVersion& version);

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_WEIGHTS_CATALOG_STATE_H_
