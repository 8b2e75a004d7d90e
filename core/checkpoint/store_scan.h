#ifndef PLANEWISE_CORE_CHECKPOINT_STORE_SCAN_H_
#define PLANEWISE_CORE_CHECKPOINT_STORE_SCAN_H_
// What a store holds, found from its files alone, and the removal of what no
// CURRENT ever acknowledged.

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/file_system.h"
#include "core/base/strong_int.h"
#include "core/checkpoint/manifest.h"
#include "core/checkpoint/store_names.h"

namespace planewise {

struct ScannedModel {
  std::string name;
  absl::Status damage;    // OK: CURRENT, manifest and segments' lengths are right
  WeightVersion version;  // of CURRENT; 0 if it names none or cannot be read
  std::shared_ptr<const Manifest> manifest;  // of that version; nullptr if unreadable

  // Nothing of it was ever promised to anybody.
  bool unacknowledged() const { return damage.ok() && version == WeightVersion(); }
};

struct StoreScan {
  std::vector<ScannedModel> models;  // by name
  WeightVersion highest_version;     // of any file's name or CURRENT
  std::vector<std::string> report;   // for people: what is odd
};

// Reads every CURRENT and its manifest and compares the lengths of segments.
// UNIMPLEMENTED if a newer format version wrote one of them.
absl::StatusOr<StoreScan> ScanStore(FileSystem& file_system, absl::string_view root);

// Removes, durably, temporary files of a model and all files of versions after
// `current`, which were never acknowledged. One line each is added to `report`.
absl::Status SweepUnacknowledged(FileSystem& file_system, const ModelPaths& paths,
                                 WeightVersion current, std::vector<std::string>& report);

// Removes, durably, a model whose CURRENT names no version or is missing. Files
// that the store did not write keep their directory; `report` says so.
absl::Status SweepModel(FileSystem& file_system, const ModelPaths& paths,
                        std::vector<std::string>& report);

}  // namespace planewise

#endif  // PLANEWISE_CORE_CHECKPOINT_STORE_SCAN_H_
