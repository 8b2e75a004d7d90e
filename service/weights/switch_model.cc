#include "service/weights/switch_model.h"

#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/live_checksums.h"
#include "service/weights/mode_switcher.h"
#include "service/weights/retention_policy.h"
#include "service/weights/start_job.h"

namespace planewise {
namespace {

// Bytes of planes that `version` holds and `other` does not.
int64_t BytesOnlyIn(const ModelVersion& version, const ModelVersion& other) {
  std::set<const Plane*> kept;
  for (const HostedLayer& layer : other.layers) {
    const PrimaryWeight& weight = *layer.weight;
    kept.insert({weight.row.get(), weight.column.get(), weight.high_precision.get()});
  }
  int64_t bytes = 0;
  for (const HostedLayer& layer : version.layers) {
    const PrimaryWeight& weight = *layer.weight;
    for (const Plane* plane :
         {weight.row.get(), weight.column.get(), weight.high_precision.get()}) {
      if (plane != nullptr && !kept.contains(plane)) {
        bytes += plane->payload.size_bytes() + plane->scales.size_bytes();
      }
    }
  }
  return bytes;
}

// One switch: Begin - [Derive] - Publish. Kept alive by its own tasks.
class ModeChange : public std::enable_shared_from_this<ModeChange> {
 public:
  ModeChange(std::shared_ptr<CatalogState> state, SwitchSpec spec, NewJob<SwitchOutcome> job)
      : state_(std::move(state)), spec_(std::move(spec)), job_(std::move(job)) {}

  // Checks and admits. Changes nothing if it fails.
  absl::Status Begin() {
    PW_ASSIGN_OR_RETURN(ModelEntry* entry, state_->FindChangeable(spec_.name));
    const SwitchTarget target{spec_.target, spec_.release_unused_planes};
    const SwitchSnapshot snapshot = state_->SnapshotOf(*entry);
    validation_ = ValidateModeSwitch(snapshot, target);
    current_ = snapshot.recipe;
    if (validation_.fingerprint != spec_.fingerprint) {
      return Error(Reason::kValidationMoved,
                   absl::StrCat(What(), ": it was validated as \"", spec_.fingerprint,
                                "\", and is \"", validation_.fingerprint, "\" now at version ",
                                snapshot.version.value(), "; validate again"))
          .With("observedFingerprint", validation_.fingerprint)
          .With("requiredFingerprint", spec_.fingerprint);
    }
    PW_RETURN_IF_ERROR(SwitchStatus(snapshot, target, validation_));
    PW_RETURN_IF_ERROR(CheckRetention(*entry));
    PW_ASSIGN_OR_RETURN(Admission admission, state_->resources.budget->Admit(
                                                 validation_.transient_bytes, What()));
    admission_.emplace(std::move(admission));
    from_ = entry->versions->newest();
    entry->busy = "being switched";
    state_->resources.runner->Run(
        Lane::kStorage, [self = shared_from_this()] { self->status_ = self->Derive(); },
        [self = shared_from_this()] { self->Publish(); });
    return absl::OkStatus();
  }

 private:
  // May one more version live? Decides which leases must go for it.
  absl::Status CheckRetention(const ModelEntry& entry) {
    RetentionSnapshot snapshot;
    snapshot.held = entry.versions->Held();
    snapshot.live_versions_max = state_->options.limits.live_versions_max;
    snapshot.lease_age_min = state_->options.limits.lease_age_min;
    const RetentionDecision decision = DecidePublish(snapshot);
    if (decision.may_publish) {
      revoke_ = decision.revoke;
      return absl::OkStatus();
    }
    return Error(Reason::kQuotaExceeded,
                 absl::StrCat(What(), ": ", snapshot.held.size(),
                              " versions are held, live_versions_max = ",
                              snapshot.live_versions_max, "; their holders must end them: ",
                              absl::StrJoin(decision.holders, ", ")))
        .With("limit", "live_versions_max")
        .WithRetryDelayMs(absl::ToInt64Milliseconds(snapshot.lease_age_min));
  }

  absl::Status Derive() {
    PW_ASSIGN_OR_RETURN(const WeightVersion number, state_->numbers.Next());
    PW_ASSIGN_OR_RETURN(
        ModelVersion version,
        SwitchModel(*from_, spec_.target, validation_.weights, number,
                    *state_->resources.quantizer, admission_->budget(), job_.job->cancelled()));
    PW_ASSIGN_OR_RETURN(std::vector<LiveChecksum> checksums,
                        LiveChecksums(version, TransferControl{}));
    checksums_ = std::make_shared<const std::vector<LiveChecksum>>(std::move(checksums));
    to_ = std::make_shared<const ModelVersion>(std::move(version));
    return absl::OkStatus();
  }

  void Publish() {
    admission_.reset();
    ModelEntry& entry = state_->models.at(spec_.name);
    entry.busy.clear();
    state_->switching.Remove(job_.key);
    job_.ticket = WorkTicket();
    if (status_.ok() && job_.job->cancelled()) status_ = GivenUp();
    if (!status_.ok()) {
      to_ = nullptr;
      return job_.job->Finish(Annotate(status_, What()));
    }
    entry.versions->Publish(to_);
    entry.checksums = std::move(checksums_);
    for (const WeightVersion version : revoke_) entry.versions->Revoke(version);

    SwitchOutcome outcome;
    outcome.version = to_->version;
    outcome.validation = {std::move(validation_), from_->version, current_};
    bool held = false;
    for (const HeldVersion& version : entry.versions->Held()) {
      held = held || version.version == from_->version;
    }
    if (!held) outcome.freed_bytes = BytesOnlyIn(*from_, *to_);
    from_ = nullptr;
    state_->switched.Remember(job_.key, spec_, outcome);
    job_.job->Finish(std::move(outcome));
  }

  std::string What() const {
    return absl::StrCat("switch model \"", spec_.name, "\" to ", spec_.target.ToString());
  }

  const std::shared_ptr<CatalogState> state_;
  const SwitchSpec spec_;
  NewJob<SwitchOutcome> job_;
  SwitchValidation validation_;
  Recipe current_;
  std::vector<WeightVersion> revoke_;
  std::optional<Admission> admission_;
  std::shared_ptr<const ModelVersion> from_;
  absl::Status status_;
  std::shared_ptr<const ModelVersion> to_;
  RecordedChecksums checksums_;
};

}  // namespace

absl::StatusOr<ValidationOutcome> ValidateSwitch(CatalogState& state, absl::string_view name,
                                                 const SwitchTarget& target) {
  PW_ASSIGN_OR_RETURN(const ModelEntry* entry, state.FindServing(name));
  const SwitchSnapshot snapshot = state.SnapshotOf(*entry);
  return ValidationOutcome{ValidateModeSwitch(snapshot, target), snapshot.version,
                           snapshot.recipe};
}

JobTicket SwitchMode(const std::shared_ptr<CatalogState>& state, const Principal& principal,
                     SwitchSpec spec, DoneCallback<SwitchOutcome> done) {
  const JobKind<SwitchSpec, SwitchOutcome> kind{
      .running = state->switching,
      .remembered = [&](const std::string& key) -> absl::StatusOr<std::optional<SwitchOutcome>> {
        PW_ASSIGN_OR_RETURN(const SwitchOutcome* known, state->switched.Find(key, spec));
        if (known == nullptr) return std::nullopt;
        return *known;
      },
      .begin =
          [&](NewJob<SwitchOutcome> job) {
            return std::make_shared<ModeChange>(state, spec, std::move(job))->Begin();
          }};
  return StartJob<SwitchSpec, SwitchOutcome>(*state, principal,
                                             absl::StrCat("switch model \"", spec.name, "\""),
                                             spec, nullptr, std::move(done), kind);
}

}  // namespace planewise
