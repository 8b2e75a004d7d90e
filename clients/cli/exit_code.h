#ifndef PLANEWISE_CLIENTS_CLI_EXIT_CODE_H_
#define PLANEWISE_CLIENTS_CLI_EXIT_CODE_H_
// What the process returns. Scripts branch on it.

#include "absl/status/status.h"

namespace planewise {

enum class ExitCode {
  kOk = 0,
  kNegative = 1,     // a refusal: does not fit, may not switch, damaged, the daemon said no
  kUsage = 2,        // the command line is wrong
  kUnavailable = 3,  // the daemon cannot be reached
};

// For a call that failed.
inline ExitCode ExitCodeOf(const absl::Status& status) {
  if (status.ok()) return ExitCode::kOk;
  return status.code() == absl::StatusCode::kUnavailable ? ExitCode::kUnavailable
                                                         : ExitCode::kNegative;
}

}  // namespace planewise

#endif  // PLANEWISE_CLIENTS_CLI_EXIT_CODE_H_
