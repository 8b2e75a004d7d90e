#include "clients/cli/switch_table.h"

#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "clients/cli/recipe_flags.h"
#include "planner/memory_report.h"

namespace planewise {
namespace {

std::string VerdictText(v1::SwitchVerdict verdict) {
  const std::string name = v1::SwitchVerdict_Name(verdict);
  constexpr absl::string_view kPrefix = "SWITCH_VERDICT_";
  return name.substr(kPrefix.size());
}

// What one remedy costs over all weights that have it.
struct Cost {
  int64_t bytes = 0;
  double seconds = 0;
};

// Weights that get the same verdict for the same reason.
struct Group {
  std::vector<std::string> weights;
  std::string observed;  // of the first one
  std::map<std::string, Cost> remedies;  // by action
};

using GroupKey = std::pair<v1::SwitchVerdict, std::pair<std::string, std::string>>;

void Add(const std::string& weight, const v1::SwitchReason& reason, Group& group) {
  if (group.weights.empty()) group.observed = reason.observed();
  group.weights.push_back(weight);
  for (const v1::SwitchRemedy& remedy : reason.remedies()) {
    Cost& cost = group.remedies[remedy.action()];
    cost.bytes += remedy.bytes();
    cost.seconds += remedy.seconds();
  }
}

std::string GroupText(const GroupKey& key, const Group& group) {
  const auto& [code, rule] = key.second;
  std::string text = absl::StrCat(
      VerdictText(key.first), "  ", code, "  ",
      group.weights.size() == 1
          ? group.weights.front()
          : absl::StrCat(group.weights.size(), " weights, first ", group.weights.front()),
      "\n  rule      ", rule, "\n  observed  ", group.observed, "\n");
  for (const auto& [action, cost] : group.remedies) {
    absl::StrAppend(&text, "  remedy    ", action);
    if (cost.bytes > 0) {
      absl::StrAppend(&text, ": ", FormatBytes(cost.bytes),
                      absl::StrFormat(", about %.3g s", cost.seconds));
    }
    text += "\n";
  }
  return text;
}

}  // namespace

bool SwitchRuns(const v1::ValidateModeSwitchResponse& validation) {
  return validation.verdict() == v1::SWITCH_VERDICT_ALLOWED ||
         validation.verdict() == v1::SWITCH_VERDICT_ALLOWED_BY_DERIVATION;
}

std::string SwitchText(const v1::ValidateModeSwitchResponse& validation,
                       const v1::Recipe& target) {
  std::string text = absl::StrCat(
      RecipeText(validation.current()), " -> ", RecipeText(target), ": ",
      VerdictText(validation.verdict()), "\n",                                              //
      validation.allowed_count(), " allowed, ", validation.derivation_count(),              //
      " by derivation, ", validation.needs_master_count(), " need masters, ",               //
      validation.rejected_count(), " rejected\n",                                           //
      "persistent bytes ", validation.persistent_delta_bytes() >= 0 ? "+" : "",             //
      validation.persistent_delta_bytes(), ", transient ", validation.transient_bytes(),    //
      ", to upload ", validation.upload_bytes(), "\nversion ", validation.version(),        //
      ", fingerprint ", validation.fingerprint(), "\n");

  std::map<GroupKey, Group> groups;
  for (const v1::WeightVerdict& weight : validation.weights()) {
    for (const v1::SwitchReason& reason : weight.reasons()) {
      Add(weight.weight(), reason, groups[{weight.verdict(), {reason.code(), reason.rule()}}]);
    }
  }
  for (const v1::SwitchReason& reason : validation.model_reasons()) {
    Add("the model", reason, groups[{validation.verdict(), {reason.code(), reason.rule()}}]);
  }
  for (const auto& [key, group] : groups) absl::StrAppend(&text, "\n", GroupText(key, group));
  return text;
}

}  // namespace planewise
