#ifndef PLANEWISE_CORE_CHECKPOINT_STORE_NAMES_H_
#define PLANEWISE_CORE_CHECKPOINT_STORE_NAMES_H_
// Names of the store's files and directories (FORMAT.md, "Tree").

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/base/strong_int.h"

namespace planewise {

// [A-Za-z0-9._-]{1,128}, not "." or "..". INVALID_ARGUMENT naming the rule.
absl::Status CheckModelName(absl::string_view name);

// Below <root>/models/<model>/manifests: 20 digits, so that names sort by
// version.
std::string ManifestFileName(WeightVersion version);
// Below <root>/models/<model>/segments; `index` counts a version's segments.
std::string SegmentFileName(WeightVersion version, int64_t index);

// The version in such a name; nullopt for any other name.
std::optional<WeightVersion> VersionOfManifestFile(absl::string_view name);
std::optional<WeightVersion> VersionOfSegmentFile(absl::string_view name);

// The paths of one model.
struct ModelPaths {
  ModelPaths(absl::string_view root, absl::string_view model);

  std::string directory;
  std::string current;
  std::string manifests;
  std::string segments;
};

}  // namespace planewise

#endif  // PLANEWISE_CORE_CHECKPOINT_STORE_NAMES_H_
