#ifndef PLANEWISE_CLIENTS_CLI_CLI_VERSION_H_
#define PLANEWISE_CLIENTS_CLI_CLI_VERSION_H_
// The command line's own version (SemVer).

#include "absl/strings/string_view.h"

namespace planewise {

inline constexpr absl::string_view kCliVersion = "0.1.0";

}  // namespace planewise

#endif  // PLANEWISE_CLIENTS_CLI_CLI_VERSION_H_
