#include "core/checkpoint/path_confinement.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/error.h"

namespace planewise {
namespace {

bool IsBelow(absl::string_view path, absl::Span<const std::string> roots) {
  for (const std::string& root : roots) {
    if (path == root || absl::StartsWith(path, JoinPath(root, ""))) return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<std::string> ResolveWithinRoots(FileSystem& file_system, absl::string_view path,
                                               absl::Span<const std::string> roots) {
  const absl::StatusOr<std::string> resolved = file_system.Resolve(path);
  // Where nothing can be resolved the text decides: it must not tell a caller
  // what exists elsewhere.
  const bool has_dots = absl::StrContains(path, "..");
  const bool inside = resolved.ok() ? IsBelow(*resolved, roots) : !has_dots && IsBelow(path, roots);
  if (inside) return resolved;
  return Error(Reason::kPathOutsideRoots,
               absl::StrCat("path \"", path, "\" is not below a configured root: ",
                            roots.empty() ? "there is none" : absl::StrJoin(roots, ", "),
                            "; move it below one, or start the daemon with another --root"))
      .With("path", path);
}

}  // namespace planewise
