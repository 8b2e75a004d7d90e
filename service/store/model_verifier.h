#ifndef PLANEWISE_SERVICE_STORE_MODEL_VERIFIER_H_
#define PLANEWISE_SERVICE_STORE_MODEL_VERIFIER_H_
// Is every byte of a model what it was: those in memory against the checksums
// taken when they were made, those on disk against the manifest, and both
// against each other where they are of one version?

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/checkpoint/live_checksums.h"
#include "core/checkpoint/model_store.h"
#include "core/checkpoint/transfer.h"
#include "core/layer/model_version.h"
#include "core/tensor/memory_budget.h"
#include "service/weights/catalog_requests.h"

namespace planewise {

// A version in memory, with the checksums taken when it was made.
struct LiveVersion {
  std::shared_ptr<const ModelVersion> version;
  std::shared_ptr<const std::vector<LiveChecksum>> recorded;
};

// Verifies `model` in memory, if `live` has a version, and in `store`, if that
// is not nullptr and holds the model; that takes memory of one plane. Blocks on
// the disk. Damage is a finding; CANCELLED, RESOURCE_EXHAUSTED, and failures to
// read at all, are failures.
absl::StatusOr<VerifyOutcome> VerifyModel(const std::string& model, const LiveVersion& live,
                                          ModelStore* store, MemoryBudget& budget,
                                          const TransferControl& control);

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_STORE_MODEL_VERIFIER_H_
