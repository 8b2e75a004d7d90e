#include "proto/address/default_address.h"

#include <unistd.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace planewise {

std::string DefaultAddress(absl::string_view runtime_dir, unsigned user_id) {
  // A relative XDG_RUNTIME_DIR is to be ignored, its specification says.
  if (runtime_dir.empty() || runtime_dir.front() != '/') {
    return absl::StrCat("unix:///tmp/planewise-", user_id, "/planewise.sock");
  }
  return absl::StrCat("unix://", runtime_dir, "/planewise/planewise.sock");
}

std::string DefaultAddress() {
  const char* const runtime_dir = std::getenv("XDG_RUNTIME_DIR");
  return DefaultAddress(runtime_dir != nullptr ? runtime_dir : "", getuid());
}

}  // namespace planewise
