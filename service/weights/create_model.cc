#include "service/weights/create_model.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/live_checksums.h"
#include "core/recipe/recipe.h"
#include "planner/what_if.h"
#include "service/weights/lane_progress.h"
#include "service/weights/model_loader.h"
#include "service/weights/model_source.h"
#include "service/weights/start_job.h"

namespace planewise {
namespace {

// One create, from the executor to the storage lane and back, twice:
// Begin - [Plan] - Admit - [Load] - Publish. Kept alive by its own tasks.
class Creation : public std::enable_shared_from_this<Creation> {
 public:
  Creation(std::shared_ptr<CatalogState> state, CreateModelSpec spec,
           NewJob<ModelDescription> job)
      : state_(std::move(state)), spec_(std::move(spec)), job_(std::move(job)) {}

  void Begin() {
    if (!spec_.validate_only) state_->Reserve(spec_.name);
    OnStorageLane([self = shared_from_this()] { self->Plan(); },
                  [self = shared_from_this()] { self->Admit(); });
  }

 private:
  void OnStorageLane(absl::AnyInvocable<void() &&> work, absl::AnyInvocable<void() &&> done) {
    state_->resources.runner->Run(Lane::kStorage, std::move(work), std::move(done));
  }

  void Plan() {
    absl::StatusOr<ModelSource> source = OpenModelSource(
        *state_->resources.file_system, state_->options.source_roots, spec_);
    status_ = source.status();
    if (source.ok()) source_.emplace(*std::move(source));
  }

  void Admit() {
    if (status_.ok() && job_.job->cancelled()) status_ = GivenUp();
    if (!status_.ok()) return Fail(Annotate(status_, What()));
    // Another create may have taken the memory since; this one is told what
    // would fit instead. From here on the bytes are this load's alone.
    MemoryBudget& budget = *state_->resources.budget;
    const absl::StatusOr<FitReport> fit =
        CheckFit(source_->inventory, source_->plan.options,
                 budget.limit_bytes() - budget.used_bytes());
    if (!fit.ok()) return Fail(Annotate(fit.status(), What()));
    if (const absl::Status fits = FitStatus(*fit, What()); !fits.ok()) return Fail(fits);
    absl::StatusOr<Admission> admission =
        budget.Admit(source_->plan.totals.loading_bytes, What());
    if (!admission.ok()) return Fail(admission.status());
    if (spec_.validate_only) return End(PlannedDescription());
    admission_.emplace(*std::move(admission));
    OnStorageLane([self = shared_from_this()] { self->Load(); },
                  [self = shared_from_this()] { self->Publish(); });
  }

  void Load() { status_ = LoadVersion(); }

  absl::Status LoadVersion() {
    PW_ASSIGN_OR_RETURN(const WeightVersion number, state_->numbers.Next());
    const TransferControl control =
        LaneProgress(*state_->resources.executor, job_.job, "load");
    PW_ASSIGN_OR_RETURN(ModelVersion version,
                        LoadModel(*source_, spec_, number, *state_->resources.quantizer,
                                  admission_->budget(), control));
    PW_ASSIGN_OR_RETURN(std::vector<LiveChecksum> checksums,
                        LiveChecksums(version, TransferControl{}));
    checksums_ = std::make_shared<const std::vector<LiveChecksum>>(std::move(checksums));
    version_.emplace(std::move(version));
    return absl::OkStatus();
  }

  void Publish() {
    if (status_.ok() && job_.job->cancelled()) status_ = GivenUp();
    if (!status_.ok()) return Fail(Annotate(status_, What()));
    ModelEntry& entry = state_->models.at(spec_.name);
    entry.plan = std::move(source_->plan);
    entry.actual_load_peak_bytes = admission_->budget().peak_bytes(MemoryUse::kTransient);
    admission_.reset();
    state_->Serve(spec_.name, entry, *std::move(version_), std::move(checksums_));
    state_->created.Remember(job_.key, spec_, spec_.name);
    End(state_->Describe(spec_.name, entry));
  }

  ModelDescription PlannedDescription() const {
    ModelDescription description;
    description.name = spec_.name;
    for (const LayerPlan& layer : source_->plan.layers) {
      description.planned_weight_bytes.push_back(layer.weight_bytes());
    }
    description.planned_bytes = source_->plan.totals.persistent_bytes;
    description.planned_load_peak_bytes = source_->plan.totals.load_peak_bytes;
    description.plan = source_->plan;
    return description;
  }

  // Leaves nothing (invariant 2 of the catalog).
  void Fail(const absl::Status& why) {
    version_.reset();
    admission_.reset();
    if (!spec_.validate_only) state_->Remove(spec_.name);
    End(why);
  }

  void End(const absl::StatusOr<ModelDescription>& result) {
    state_->creating.Remove(job_.key);
    job_.ticket = WorkTicket();
    job_.job->Finish(result);
  }

  std::string What() const { return absl::StrCat("create model \"", spec_.name, "\""); }

  const std::shared_ptr<CatalogState> state_;
  const CreateModelSpec spec_;
  NewJob<ModelDescription> job_;
  absl::Status status_;
  std::optional<ModelSource> source_;
  std::optional<Admission> admission_;
  std::optional<ModelVersion> version_;
  RecordedChecksums checksums_;
};

// What a request made that succeeded before; nullopt for a new one.
absl::StatusOr<std::optional<ModelDescription>> Remembered(CatalogState& state,
                                                           const std::string& request_key,
                                                           const CreateModelSpec& spec) {
  PW_ASSIGN_OR_RETURN(const std::string* name, state.created.Find(request_key, spec));
  if (name == nullptr) return std::nullopt;
  const absl::StatusOr<ModelEntry*> entry = state.Find(*name);
  if (!entry.ok()) {
    return Annotate(entry.status(), "this request created the model, and it was deleted since");
  }
  return state.Describe(*name, **entry);
}

absl::Status CheckCreate(const CatalogState& state, const CreateModelSpec& spec) {
  PW_RETURN_IF_ERROR(CheckModelName(spec.name));
  PW_RETURN_IF_ERROR(CheckRecipe(spec.recipe));
  if (state.models.contains(spec.name)) {
    return Error(Reason::kAlreadyExists,
                 absl::StrCat("model \"", spec.name, "\": the name is taken; choose another, or "
                              "delete that model first"))
        .With("model", spec.name);
  }
  const int limit = state.options.limits.models_max;
  if (state.models.size() >= static_cast<size_t>(limit)) {
    return Error(Reason::kQuotaExceeded,
                 absl::StrCat("create model \"", spec.name, "\": ", state.models.size(),
                              " models are hosted; models_max = ", limit))
        .With("limit", "models_max")
        .With("limitValue", int64_t{limit});
  }
  return absl::OkStatus();
}

}  // namespace

JobTicket CreateModel(const std::shared_ptr<CatalogState>& state, const Principal& principal,
                      CreateModelSpec spec, ProgressCallback progress,
                      DoneCallback<ModelDescription> done) {
  const JobKind<CreateModelSpec, ModelDescription> kind{
      .running = state->creating,
      .remembered = [&](const std::string& key) { return Remembered(*state, key, spec); },
      .begin = [&](NewJob<ModelDescription> job) {
        PW_RETURN_IF_ERROR(CheckCreate(*state, spec));
        std::make_shared<Creation>(state, spec, std::move(job))->Begin();
        return absl::OkStatus();
      }};
  return StartJob(*state, principal, absl::StrCat("create model \"", spec.name, "\""), spec,
                  std::move(progress), std::move(done), kind);
}

}  // namespace planewise
