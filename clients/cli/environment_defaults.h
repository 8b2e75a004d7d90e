#ifndef PLANEWISE_CLIENTS_CLI_ENVIRONMENT_DEFAULTS_H_
#define PLANEWISE_CLIENTS_CLI_ENVIRONMENT_DEFAULTS_H_
// The backward override that the environment names, in Transformer Engine's
// spellings. A default only: a flag wins, and the daemon never looks.
//
//   NVTE_BACKWARD_OVERRIDE          none | high_precision | dequantized
//   NVTE_BACKWARD_MODE              default | unquant | dequant
//   NVTE_KEEP_BACKWARD_UNQUANTIZED  1 (high_precision) | 0 (none)

#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "core/recipe/recipe.h"

namespace planewise {

struct EnvironmentOverride {
  BackwardOverride value = BackwardOverride::kNone;
  std::string variable;  // that named it
};

// The value of an environment variable, or nullptr.
using EnvironmentLookup = std::function<const char*(const char* name)>;

// nullopt if none is set. INVALID_ARGUMENT / INVALID_REQUEST for a value that is
// not known, listing the valid ones, and for two variables that disagree.
absl::StatusOr<std::optional<EnvironmentOverride>> OverrideFromEnvironment(
    const EnvironmentLookup& lookup);

}  // namespace planewise

#endif  // PLANEWISE_CLIENTS_CLI_ENVIRONMENT_DEFAULTS_H_
