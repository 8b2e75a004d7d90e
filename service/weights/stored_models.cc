#include "service/weights/stored_models.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/live_checksums.h"
#include "core/checkpoint/model_store.h"
#include "service/weights/lane_progress.h"
#include "service/weights/start_job.h"

namespace planewise {
namespace {

absl::Status NoStore(absl::string_view what) {
  return Error(Reason::kNoStore,
               absl::StrCat(what, ": the daemon was started without a store; start it with one"));
}

absl::Status BeginSave(const std::shared_ptr<CatalogState>& state, const SaveSpec& spec,
                       NewJob<SaveOutcome> job) {
  const std::string what = absl::StrCat("save model \"", spec.name, "\"");
  if (state->resources.store == nullptr) return NoStore(what);
  PW_ASSIGN_OR_RETURN(ModelEntry* entry, state->FindChangeable(spec.name));
  entry->busy = "being saved";
  struct Save {
    SaveSpec spec;
    NewJob<SaveOutcome> job;
    std::shared_ptr<const ModelVersion> version;
    absl::StatusOr<SaveOutcome> outcome = absl::CancelledError();
  };
  auto save = std::make_shared<Save>(Save{spec, std::move(job), entry->versions->newest()});
  state->resources.runner->Run(
      Lane::kStorage,
      [state, save] {
        std::vector<std::string> request_ids;
        if (!save->spec.request_id.empty()) request_ids.push_back(save->spec.request_id);
        save->outcome = state->resources.store->Save(
            *save->version, request_ids,
            LaneProgress(*state->resources.executor, save->job.job, "save"));
      },
      [state, save, what] {
        ModelEntry& entry = state->models.at(save->spec.name);
        entry.busy.clear();
        state->saving.Remove(save->job.key);
        save->job.ticket = WorkTicket();
        if (!save->outcome.ok()) {
          return save->job.job->Finish(Annotate(save->outcome.status(), what));
        }
        entry.durable_version = std::max(entry.durable_version, save->outcome->version);
        state->saved.Remember(save->job.key, save->spec, *save->outcome);
        save->job.job->Finish(save->outcome);
      });
  return absl::OkStatus();
}

// What the name's model is, if it may be deleted.
absl::StatusOr<ModelEntry*> FindDeletable(CatalogState& state, const DeleteModelSpec& spec) {
  if (spec.delete_stored && state.resources.store == nullptr) {
    return NoStore(absl::StrCat("delete model \"", spec.name, "\" with delete_stored"));
  }
  PW_ASSIGN_OR_RETURN(ModelEntry* entry, state.Find(spec.name));
  // A damaged model has no version to be held against.
  if (entry->state == ModelState::kDamaged) return entry;
  PW_ASSIGN_OR_RETURN(entry, state.FindChangeable(spec.name));
  const WeightVersion newest = entry->versions->newest()->version;
  if (spec.expected_version != WeightVersion() && spec.expected_version != newest) {
    return Error(Reason::kVersionConflict,
                 absl::StrCat("delete model \"", spec.name, "\": expected version ",
                              spec.expected_version.value(), ", current ", newest.value(),
                              "; describe it and decide anew"))
        .With("expectedVersion", static_cast<int64_t>(spec.expected_version.value()))
        .With("currentVersion", static_cast<int64_t>(newest.value()));
  }
  return entry;
}

DeleteOutcome RemoveFromMemory(CatalogState& state, const DeleteModelSpec& spec,
                               const std::string& key) {
  DeleteOutcome outcome;
  const ModelEntry& entry = state.models.at(spec.name);
  if (entry.versions != nullptr && entry.versions->lease_count() == 0) {
    outcome.freed_bytes = entry.versions->newest()->stored_bytes();
  }
  state.Remove(spec.name);
  state.deleted.Remember(key, spec, outcome);
  return outcome;
}

// The answer, or nullopt while the store deletes: `done` is taken then.
absl::StatusOr<std::optional<DeleteOutcome>> BeginDelete(
    const std::shared_ptr<CatalogState>& state, const Principal& principal,
    const DeleteModelSpec& spec, DoneCallback<DeleteOutcome>& done) {
  PW_ASSIGN_OR_RETURN(const std::string key, state->RequestKey(principal, spec.request_id));
  PW_ASSIGN_OR_RETURN(const DeleteOutcome* known, state->deleted.Find(key, spec));
  if (known != nullptr) return *known;
  PW_ASSIGN_OR_RETURN(ModelEntry* entry, FindDeletable(*state, spec));
  if (!spec.delete_stored) return RemoveFromMemory(*state, spec, key);

  const std::string what = absl::StrCat("delete model \"", spec.name, "\"");
  PW_ASSIGN_OR_RETURN(WorkTicket work, state->jobs.Admit(what));
  entry->busy = "being deleted";
  auto status = std::make_shared<absl::Status>();
  state->resources.runner->Run(
      Lane::kStorage,
      [state, spec, status] {
        *status = state->resources.store->Delete(spec.name);
        // It was never saved.
        if (absl::IsNotFound(*status)) *status = absl::OkStatus();
      },
      [state, spec, key, what, status, work = std::make_shared<WorkTicket>(std::move(work)),
       done = std::move(done)]() mutable {
        if (!status->ok()) {
          state->models.at(spec.name).busy.clear();
          return std::move(done)(Annotate(*status, what));
        }
        std::move(done)(RemoveFromMemory(*state, spec, key));
      });
  return std::nullopt;
}

// Loads one stored model after another, each published before the next begins.
class StoredLoads : public std::enable_shared_from_this<StoredLoads> {
 public:
  StoredLoads(std::shared_ptr<CatalogState> state, std::vector<StoredModel> models,
              DoneCallback<std::vector<std::string>> done)
      : state_(std::move(state)), done_(std::move(done)), models_(std::move(models)) {}

  void Begin() {
    // All names at once, so that nobody creates a model of one in between.
    for (const StoredModel& model : models_) state_->Reserve(model.name);
    Next();
  }

 private:
  void Next() {
    if (next_ == models_.size()) return std::move(done_)(std::move(report_));
    state_->resources.runner->Run(
        Lane::kStorage, [self = shared_from_this()] { self->status_ = self->Load(); },
        [self = shared_from_this()] { self->Publish(); });
  }

  absl::Status Load() {
    const StoredModel& model = models_[next_];
    PW_RETURN_IF_ERROR(model.damage);
    PW_ASSIGN_OR_RETURN(Admission admission,
                        state_->resources.budget->Admit(model.stored_bytes,
                                                        absl::StrCat("model \"", model.name,
                                                                     "\"")));
    PW_ASSIGN_OR_RETURN(version_, state_->resources.store->Load(model.name, admission.budget(),
                                                                TransferControl{}));
    PW_ASSIGN_OR_RETURN(std::vector<LiveChecksum> checksums,
                        LiveChecksums(version_, TransferControl{}));
    checksums_ = std::make_shared<const std::vector<LiveChecksum>>(std::move(checksums));
    return absl::OkStatus();
  }

  void Publish() {
    const StoredModel& model = models_[next_++];
    if (status_.ok()) {
      ModelEntry& entry = state_->models.at(model.name);
      entry.durable_version = version_.version;
      state_->Serve(model.name, entry, std::exchange(version_, ModelVersion()),
                    std::move(checksums_));
      report_.push_back(absl::StrCat("model \"", model.name, "\": version ",
                                     model.version.value(), ", ", model.stored_bytes, " bytes"));
    } else {
      state_->MarkDamaged(model.name, status_);
      report_.push_back(absl::StrCat("model \"", model.name, "\": not served: ",
                                     status_.message()));
    }
    Next();
  }

  const std::shared_ptr<CatalogState> state_;
  DoneCallback<std::vector<std::string>> done_;
  const std::vector<StoredModel> models_;
  size_t next_ = 0;
  absl::Status status_;
  ModelVersion version_;
  RecordedChecksums checksums_;
  std::vector<std::string> report_;
};

}  // namespace

JobTicket SaveModel(const std::shared_ptr<CatalogState>& state, const Principal& principal,
                    SaveSpec spec, ProgressCallback progress, DoneCallback<SaveOutcome> done) {
  const JobKind<SaveSpec, SaveOutcome> kind{
      .running = state->saving,
      .remembered = [&](const std::string& key) -> absl::StatusOr<std::optional<SaveOutcome>> {
        PW_ASSIGN_OR_RETURN(const SaveOutcome* known, state->saved.Find(key, spec));
        if (known == nullptr) return std::nullopt;
        return *known;
      },
      .begin = [&](NewJob<SaveOutcome> job) { return BeginSave(state, spec, std::move(job)); }};
  return StartJob(*state, principal, absl::StrCat("save model \"", spec.name, "\""), spec,
                  std::move(progress), std::move(done), kind);
}

void DeleteModel(const std::shared_ptr<CatalogState>& state, const Principal& principal,
                 const DeleteModelSpec& spec, DoneCallback<DeleteOutcome> done) {
  absl::StatusOr<std::optional<DeleteOutcome>> answer =
      BeginDelete(state, principal, spec, done);
  if (!answer.ok()) {
    state->Answer<DeleteOutcome>(std::move(done), answer.status());
  } else if (answer->has_value()) {
    state->Answer<DeleteOutcome>(std::move(done), **answer);
  }
}

void LoadStoredModels(const std::shared_ptr<CatalogState>& state,
                      DoneCallback<std::vector<std::string>> done) {
  std::vector<StoredModel> models;
  if (state->resources.store != nullptr) models = state->resources.store->List();
  if (models.empty()) {
    return state->Answer<std::vector<std::string>>(std::move(done), std::vector<std::string>());
  }
  std::make_shared<StoredLoads>(state, std::move(models), std::move(done))->Begin();
}

}  // namespace planewise
