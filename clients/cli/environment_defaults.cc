#include "clients/cli/environment_defaults.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/error.h"

namespace planewise {
namespace {

struct Variable {
  const char* name;
  std::vector<std::pair<std::string, BackwardOverride>> values;
};

const std::vector<Variable>& Variables() {
  static const auto* const variables = new std::vector<Variable>{
      {"NVTE_BACKWARD_OVERRIDE",
       {{"none", BackwardOverride::kNone},
        {"high_precision", BackwardOverride::kHighPrecision},
        {"dequantized", BackwardOverride::kDequantized}}},
      {"NVTE_BACKWARD_MODE",
       {{"default", BackwardOverride::kNone},
        {"unquant", BackwardOverride::kHighPrecision},
        {"dequant", BackwardOverride::kDequantized}}},
      {"NVTE_KEEP_BACKWARD_UNQUANTIZED",
       {{"1", BackwardOverride::kHighPrecision}, {"0", BackwardOverride::kNone}}},
  };
  return *variables;
}

absl::StatusOr<BackwardOverride> Parse(const Variable& variable, const std::string& text) {
  std::vector<std::string> valid;
  for (const auto& [spelling, value] : variable.values) {
    if (spelling == text) return value;
    valid.push_back(spelling);
  }
  return Error(Reason::kInvalidRequest,
               absl::StrCat("environment variable ", variable.name, "=\"", text,
                            "\" is not known; valid: ", absl::StrJoin(valid, ", ")));
}

}  // namespace

absl::StatusOr<std::optional<EnvironmentOverride>> OverrideFromEnvironment(
    const EnvironmentLookup& lookup) {
  std::optional<EnvironmentOverride> found;
  for (const Variable& variable : Variables()) {
    const char* const text = lookup(variable.name);
    if (text == nullptr) continue;
    const absl::StatusOr<BackwardOverride> value = Parse(variable, text);
    if (!value.ok()) return value.status();
    if (found.has_value() && found->value != *value) {
      return Error(Reason::kInvalidRequest,
                   absl::StrCat("environment variables disagree: ", found->variable, " means ",
                                Name(found->value), ", ", variable.name, " means ", Name(*value),
                                "; keep one of them"));
    }
    if (!found.has_value()) found = EnvironmentOverride{*value, variable.name};
  }
  return found;
}

}  // namespace planewise
