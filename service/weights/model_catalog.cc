#include "service/weights/model_catalog.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "service/store/model_verifier.h"
#include "service/weights/catalog_state.h"
#include "service/weights/create_model.h"
#include "service/weights/lane_progress.h"
#include "service/weights/stored_models.h"
#include "service/weights/switch_model.h"
#include "service/weights/weight_parts_reader.h"

namespace planewise {

ModelCatalog::ModelCatalog(CatalogResources resources, CatalogOptions options)
    : state_(std::make_shared<CatalogState>(std::move(resources), std::move(options))) {}

ModelCatalog::~ModelCatalog() = default;

JobTicket ModelCatalog::Create(const Principal& principal, CreateModelSpec spec,
                               ProgressCallback progress, DoneCallback<ModelDescription> done) {
  return CreateModel(state_, principal, std::move(spec), std::move(progress), std::move(done));
}

void ModelCatalog::Abandon(JobTicket ticket) {
  state_->resources.executor->Post([state = state_, ticket] {
    const auto found = state->tickets.find(ticket);
    if (found == state->tickets.end()) return;
    if (const auto job = found->second.lock()) job->Abandon(ticket);
  });
}

absl::StatusOr<bool> ModelCatalog::GiveUp(const Principal& principal,
                                          const std::string& request_id) {
  PW_ASSIGN_OR_RETURN(const std::string key, state_->RequestKey(principal, request_id));
  if (key.empty()) {
    return Error(Reason::kInvalidRequest,
                 "field request_id: \"\"; name the request that is to be given up");
  }
  return state_->creating.GiveUp(key) || state_->switching.GiveUp(key) ||
         state_->saving.GiveUp(key);
}

absl::StatusOr<ModelDescription> ModelCatalog::Describe(absl::string_view name) const {
  PW_ASSIGN_OR_RETURN(const ModelEntry* entry, state_->Find(name));
  return state_->Describe(std::string(name), *entry);
}

std::vector<ModelDescription> ModelCatalog::List(absl::string_view after, int limit) const {
  std::vector<ModelDescription> models;
  for (auto model = state_->models.upper_bound(std::string(after));
       model != state_->models.end() && static_cast<int>(models.size()) < limit; ++model) {
    models.push_back(state_->Describe(model->first, model->second));
  }
  return models;
}

void ModelCatalog::Delete(const Principal& principal, const DeleteModelSpec& spec,
                          DoneCallback<DeleteOutcome> done) {
  DeleteModel(state_, principal, spec, std::move(done));
}

absl::StatusOr<ValidationOutcome> ModelCatalog::Validate(absl::string_view name,
                                                         const SwitchTarget& target) const {
  return ValidateSwitch(*state_, name, target);
}

JobTicket ModelCatalog::Switch(const Principal& principal, SwitchSpec spec,
                               DoneCallback<SwitchOutcome> done) {
  return SwitchMode(state_, principal, std::move(spec), std::move(done));
}

JobTicket ModelCatalog::Save(const Principal& principal, std::string name, std::string request_id,
                             ProgressCallback progress, DoneCallback<SaveOutcome> done) {
  return SaveModel(state_, principal, {std::move(name), std::move(request_id)},
                   std::move(progress), std::move(done));
}

JobTicket ModelCatalog::Verify(const Principal&, std::string name, ProgressCallback progress,
                               DoneCallback<VerifyOutcome> done) {
  const std::string what = absl::StrCat("verify model \"", name, "\"");
  absl::StatusOr<ModelEntry*> entry = state_->Find(name);
  // A damaged model has something on disk; one that loads has nothing yet.
  if (entry.ok() && (*entry)->state != ModelState::kDamaged) entry = state_->FindServing(name);
  absl::StatusOr<WorkTicket> work = state_->jobs.Admit(what);
  if (!entry.ok() || !work.ok()) {
    state_->Answer<VerifyOutcome>(std::move(done), entry.ok() ? work.status() : entry.status());
    return JobTicket();
  }
  struct Verification {
    std::string model;
    LiveVersion live;
    WorkTicket work;
    absl::StatusOr<VerifyOutcome> outcome = absl::CancelledError();
  };
  auto verification = std::make_shared<Verification>();
  verification->work = *std::move(work);
  if ((*entry)->versions != nullptr) {
    verification->live = {(*entry)->versions->newest(), (*entry)->checksums};
  }
  verification->model = std::move(name);
  auto job = std::make_shared<CatalogJob<VerifyOutcome>>();
  const JobTicket ticket = state_->NewTicket(job);
  job->AddWaiter(ticket, std::move(progress), std::move(done));
  state_->resources.runner->Run(
      Lane::kStorage,
      [state = state_, job, verification] {
        verification->outcome =
            VerifyModel(verification->model, verification->live, state->resources.store,
                        *state->resources.budget,
                        LaneProgress(*state->resources.executor, job, "verify"));
      },
      [job, verification, what] {
        verification->work = WorkTicket();
        if (!verification->outcome.ok()) {
          return job->Finish(Annotate(verification->outcome.status(), what));
        }
        job->Finish(verification->outcome);
      });
  return ticket;
}

absl::StatusOr<std::unique_ptr<WeightReader>> ModelCatalog::ReadWeights(
    const Principal& principal, const ReadWeightsSpec& spec) {
  LeaseRequest request;
  request.model = spec.name;
  request.version = spec.version;
  request.use = LeaseUse::kRead;
  request.holder = absl::StrCat("a reader, ", principal.name);
  PW_ASSIGN_OR_RETURN(WeightLease lease, Lease(std::move(request)));
  return MakeWeightReader(state_, std::move(lease), spec);
}

absl::StatusOr<WeightLease> ModelCatalog::Lease(LeaseRequest request) {
  PW_ASSIGN_OR_RETURN(const ModelEntry* entry, state_->FindServing(request.model));
  return entry->versions->Lease(std::move(request));
}

void ModelCatalog::LoadStored(DoneCallback<std::vector<std::string>> done) {
  LoadStoredModels(state_, std::move(done));
}

void ModelCatalog::BeginDrain() { state_->jobs.BeginDrain(); }

}  // namespace planewise
