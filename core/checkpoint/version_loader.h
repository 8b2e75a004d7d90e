#ifndef PLANEWISE_CORE_CHECKPOINT_VERSION_LOADER_H_
#define PLANEWISE_CORE_CHECKPOINT_VERSION_LOADER_H_
// Reads the version that a manifest describes into memory.
//
// Not here: which manifest (store_scan.h), checks beyond checksums
// (version_verifier.h).

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/file_system.h"
#include "core/checkpoint/manifest.h"
#include "core/checkpoint/transfer.h"
#include "core/layer/model_version.h"
#include "core/tensor/memory_budget.h"

namespace planewise {

// Every byte verified, in buffers of MemoryUse::kWeights. `segments` is the
// model's segments directory. RESOURCE_EXHAUSTED before anything is read;
// DATA_LOSS as SegmentReader; CANCELLED.
absl::StatusOr<ModelVersion> LoadVersion(FileSystem& file_system, absl::string_view segments,
                                         const Manifest& manifest, MemoryBudget& budget,
                                         const TransferControl& control);

}  // namespace planewise

#endif  // PLANEWISE_CORE_CHECKPOINT_VERSION_LOADER_H_
