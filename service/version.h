#ifndef PLANEWISE_SERVICE_VERSION_H_
#define PLANEWISE_SERVICE_VERSION_H_
// The daemon's own version (SemVer); the API's is proto/version/api_version.h,
// the store's core/checkpoint/FORMAT.md.

#include "absl/strings/string_view.h"

namespace planewise {

inline constexpr absl::string_view kServerVersion = "0.1.0";

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_VERSION_H_
