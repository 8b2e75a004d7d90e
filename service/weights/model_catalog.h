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

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "planner/mode_switch.h"
#include "service/auth/principal.h"
#include "service/weights/catalog_job.h"
#include "service/weights/catalog_options.h"
#include "service/weights/catalog_requests.h"
#include "service/weights/weight_lease.h"

namespace planewise {

struct CatalogState;

// One thread: every call is a task on the executor, and so is every callback.
// Work that blocks or takes long runs on Lane::kStorage.
class ModelCatalog final : public LeaseSource {
 public:
  ModelCatalog(CatalogResources resources, CatalogOptions options);
  ~ModelCatalog() override;

  // Loads, quantizes and publishes. A repeated request_id joins the first call,
  // or returns what it made.
  // INVALID_ARGUMENT: the name, recipe, path (PATH_OUTSIDE_ROOTS), checkpoint or
  // a tensor of it; ALREADY_EXISTS; NOT_FOUND: the path; RESOURCE_EXHAUSTED with
  // required and available bytes before a tensor is read; CANCELLED.
  JobTicket Create(const Principal& principal, CreateModelSpec spec, ProgressCallback progress,
                   DoneCallback<ModelDescription> done);

  // The caller of `ticket` has gone. If no other caller waits for the same job,
  // the job stops at the next safe point and leaves nothing, or ends if it is past
  // the last one. Nothing happens if the job has ended.
  void Abandon(JobTicket ticket);

  // The same for all callers of the create, switch or save that runs for
  // `request_id`. What has become of it they hear from `done`. False: none runs.
  // INVALID_ARGUMENT for an id that is empty or too long.
  absl::StatusOr<bool> GiveUp(const Principal& principal, const std::string& request_id);

  // NOT_FOUND.
  absl::StatusOr<ModelDescription> Describe(absl::string_view name) const;

  // By name, those after `after`, at most `limit`.
  std::vector<ModelDescription> List(absl::string_view after, int limit) const;

  // Ends the model for new readers; bytes go when the last lease ends.
  // NOT_FOUND; ABORTED / VERSION_CONFLICT; FAILED_PRECONDITION / MODEL_BUSY while
  // it is created, switched or saved; NO_STORE for delete_stored without one.
  void Delete(const Principal& principal, const DeleteModelSpec& spec,
              DoneCallback<DeleteOutcome> done);

  // May the model go to `target`? A verdict that refuses is a value, also for a
  // target that is never legal. NOT_FOUND, MODEL_BUSY while it loads.
  absl::StatusOr<ValidationOutcome> Validate(absl::string_view name,
                                             const SwitchTarget& target) const;

  // Publishes a version in the target mode.
  // FAILED_PRECONDITION / VALIDATION_MOVED if `fingerprint` is not that of a
  // validation now, OPERANDS_OUTSTANDING, MODEL_BUSY, and as SwitchStatus;
  // RESOURCE_EXHAUSTED if the new planes do not fit or readers hold too many
  // versions (they are named).
  JobTicket Switch(const Principal& principal, SwitchSpec spec, DoneCallback<SwitchOutcome> done);

  // Makes the newest version durable. As ModelStore::Save; NO_STORE.
  JobTicket Save(const Principal& principal, std::string name, std::string request_id,
                 ProgressCallback progress, DoneCallback<SaveOutcome> done);

  // Compares the bytes in memory with the checksums taken when they were made,
  // and the durable version's files with its manifest. Damage is a finding.
  JobTicket Verify(const Principal& principal, std::string name, ProgressCallback progress,
                   DoneCallback<VerifyOutcome> done);

  // NOT_FOUND: model, version, a weight, or a plane that is not stored;
  // INVALID_ARGUMENT: neither or both of plane and dequantize_to.
  absl::StatusOr<std::unique_ptr<WeightReader>> ReadWeights(const Principal& principal,
                                                            const ReadWeightsSpec& spec);

  absl::StatusOr<WeightLease> Lease(LeaseRequest request) override;

  // At start-up: loads every model of the store. Damaged ones, and those that do
  // not fit, are listed as kDamaged with the reason. One line each in `done`.
  void LoadStored(DoneCallback<std::vector<std::string>> done);

  // New jobs are refused with UNAVAILABLE / DRAINING from now on.
  void BeginDrain();

 private:
  const std::shared_ptr<CatalogState> state_;
};

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_WEIGHTS_MODEL_CATALOG_H_
