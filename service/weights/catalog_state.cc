#include "service/weights/catalog_state.h"

#include <iterator>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "planner/plane_decision.h"

namespace planewise {
namespace {

int64_t BytesOf(const PrimaryWeight& weight, const PlaneDecision& decision) {
  Recipe recipe;
  recipe.format = weight.format;
  recipe.weight_geometry = weight.geometry;
  recipe.amax_history_length = weight.amax_history_length;
  const auto planes = LayoutsOf(decision, recipe, weight.shape, weight.nominal);
  return planes.ok() ? TotalBytes(*planes) : 0;
}

}  // namespace

CatalogState::CatalogState(CatalogResources given, CatalogOptions settings)
    : resources(std::move(given)),
      options(std::move(settings)),
      jobs("jobs_max", options.limits.jobs_max),
      numbers(resources.store),
      created(options.limits.remembered_requests),
      switched(options.limits.remembered_requests),
      saved(options.limits.remembered_requests),
      deleted(options.limits.remembered_requests) {}

absl::StatusOr<ModelEntry*> CatalogState::Find(absl::string_view name) {
  const auto found = models.find(std::string(name));
  if (found == models.end()) {
    return Error(Reason::kNotFound, absl::StrCat("model \"", name, "\": there is none of that "
                                                 "name; list the models to see them"))
        .With("model", name);
  }
  return &found->second;
}

absl::StatusOr<ModelEntry*> CatalogState::FindServing(absl::string_view name) {
  PW_ASSIGN_OR_RETURN(ModelEntry* entry, Find(name));
  if (entry->state == ModelState::kDamaged) {
    return Annotate(entry->damage, absl::StrCat("model \"", name, "\" is not served"));
  }
  if (entry->versions == nullptr) {
    return Error(Reason::kModelBusy,
                 absl::StrCat("model \"", name, "\": it is being loaded; wait for its create"))
        .With("model", name);
  }
  return entry;
}

absl::StatusOr<ModelEntry*> CatalogState::FindChangeable(absl::string_view name) {
  PW_ASSIGN_OR_RETURN(ModelEntry* entry, FindServing(name));
  if (!entry->busy.empty()) {
    return Error(Reason::kModelBusy, absl::StrCat("model \"", name, "\": it is ", entry->busy,
                                                  "; wait until that is done"))
        .With("model", name);
  }
  return entry;
}

ModelDescription CatalogState::Describe(const std::string& name, const ModelEntry& entry) const {
  ModelDescription description;
  description.name = name;
  description.state = entry.state;
  description.damage = entry.damage;
  description.durable_version = entry.durable_version;
  description.plan = entry.plan;
  if (entry.plan.has_value()) {
    description.planned_load_peak_bytes = entry.plan->totals.load_peak_bytes;
  }
  description.actual_load_peak_bytes = entry.actual_load_peak_bytes;
  if (entry.versions != nullptr) {
    const ModelVersion& newest = *entry.versions->newest();
    description.version = entry.versions->newest();
    description.planned_weight_bytes = PlannedWeightBytes(newest);
    description.planned_bytes = PlannedBytes(newest);
    description.actual_bytes = newest.stored_bytes();
    description.lease_count = entry.versions->lease_count();
  }
  return description;
}

SwitchSnapshot CatalogState::SnapshotOf(const ModelEntry& entry) const {
  const ModelVersion& newest = *entry.versions->newest();
  const auto column_operands = entry.versions->ColumnOperands();
  SwitchSnapshot snapshot;
  snapshot.model = newest.model;
  snapshot.version = newest.version;
  snapshot.recipe = newest.recipe;
  snapshot.policy = newest.policy;
  snapshot.backward_enabled = newest.backward_enabled;
  snapshot.source_path = newest.source_path;
  snapshot.available_bytes = resources.budget->limit_bytes() - resources.budget->used_bytes();
  snapshot.device = options.device;
  for (const HostedLayer& layer : newest.layers) {
    SwitchWeight weight = SwitchWeightOf(layer);
    const auto outstanding = column_operands.find(layer.name);
    if (outstanding != column_operands.end()) weight.column_operands = outstanding->second;
    snapshot.weights.push_back(std::move(weight));
  }
  return snapshot;
}

void CatalogState::Reserve(const std::string& name) {
  models[name].busy = "being created";
  Announce(name, ModelState::kLoading);
}

void CatalogState::Serve(const std::string& name, ModelEntry& entry, ModelVersion version,
                         RecordedChecksums checksums) {
  entry.versions = std::make_unique<VersionStore>(
      *resources.clock, std::make_shared<const ModelVersion>(std::move(version)));
  entry.checksums = std::move(checksums);
  entry.busy.clear();
  entry.state = ModelState::kServing;
  Announce(name, ModelState::kServing);
}

void CatalogState::MarkDamaged(const std::string& name, absl::Status damage) {
  ModelEntry& entry = models[name];
  entry.state = ModelState::kDamaged;
  entry.damage = std::move(damage);
  entry.busy.clear();
  Announce(name, ModelState::kDamaged);
}

void CatalogState::Remove(const std::string& name) {
  models.erase(name);
  Announce(name, std::nullopt);
}

void CatalogState::Announce(const std::string& name, std::optional<ModelState> state) const {
  if (options.on_state_change) options.on_state_change(name, state);
}

absl::StatusOr<std::string> CatalogState::RequestKey(const Principal& principal,
                                                     const std::string& request_id) const {
  if (request_id.empty()) return std::string();
  const int limit = options.limits.request_id_bytes_max;
  if (request_id.size() > static_cast<size_t>(limit)) {
    return Error(Reason::kLimitExceeded,
                 absl::StrCat("field request_id: ", request_id.size(),
                              " bytes; request_id_bytes_max = ", limit))
        .With("limit", "request_id_bytes_max")
        .With("limitValue", int64_t{limit});
  }
  // Ids of one caller mean nothing to another.
  return absl::StrCat(principal.name, "\n", request_id);
}

JobTicket CatalogState::NewTicket(std::shared_ptr<AbandonableJob> job) {
  for (auto ticket = tickets.begin(); ticket != tickets.end();) {
    ticket = ticket->second.expired() ? tickets.erase(ticket) : std::next(ticket);
  }
  const JobTicket ticket(next_ticket++);
  tickets.emplace(ticket, std::move(job));
  return ticket;
}

std::vector<int64_t> PlannedWeightBytes(const ModelVersion& version) {
  std::vector<int64_t> bytes;
  for (const HostedLayer& layer : version.layers) {
    bytes.push_back(BytesOf(*layer.weight, layer.decision));
  }
  return bytes;
}

int64_t PlannedBytes(const ModelVersion& version) {
  const std::vector<int64_t> weights = PlannedWeightBytes(version);
  int64_t total = std::accumulate(weights.begin(), weights.end(), int64_t{0});
  for (const HostedLayer& layer : version.layers) {
    if (layer.bias != nullptr) total += BytesOf(*layer.bias, PlaneDecision());
  }
  return total;
}

}  // namespace planewise
