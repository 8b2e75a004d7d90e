#ifndef PLANEWISE_CORE_CHECKPOINT_PATH_CONFINEMENT_H_
#define PLANEWISE_CORE_CHECKPOINT_PATH_CONFINEMENT_H_
// Keeps file paths that come from outside below configured directories, also
// where links lead elsewhere.

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/file_system.h"

namespace planewise {

// `path` with every link followed. INVALID_ARGUMENT / PATH_OUTSIDE_ROOTS if that
// is not one of `roots` (as FileSystem::Resolve gives them) or below one; the
// answer is the same whether or not something exists there. NOT_FOUND if there
// is nothing at a path below a root.
absl::StatusOr<std::string> ResolveWithinRoots(FileSystem& file_system, absl::string_view path,
                                               absl::Span<const std::string> roots);

}  // namespace planewise

#endif  // PLANEWISE_CORE_CHECKPOINT_PATH_CONFINEMENT_H_
