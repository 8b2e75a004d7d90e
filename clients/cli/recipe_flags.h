#ifndef PLANEWISE_CLIENTS_CLI_RECIPE_FLAGS_H_
#define PLANEWISE_CLIENTS_CLI_RECIPE_FLAGS_H_
// --recipe with its fields, --backward-override, --policy, --future-mode: the flags
// that verbs share, and what they mean together with the environment.

#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "clients/cli/environment_defaults.h"
#include "core/recipe/recipe.h"
#include "core/tensor/plane_set.h"
#include "planewise/v1/recipe.pb.h"

namespace planewise {

class RecipeFlags {
 public:
  // `default_format` is shown in the help; empty: the flag may be left out. The flags
  // write into this object, which must not move any more.
  void AddTo(CLI::App& app, const std::string& default_format);

  // Why what flags and environment spell is nothing, whatever it is combined with.
  absl::Status CheckSpelling(const EnvironmentLookup& environment) const;

  // The recipe that flags and environment name. Without --recipe it is `unnamed` but
  // for the fields that flags set and the override; with it, other fields are the
  // format's defaults. --backward-override wins over the environment. INVALID_ARGUMENT
  // as CheckRecipe, and for a flag of a field that the format does not have; names the
  // environment variable if the override came from there.
  absl::StatusOr<Recipe> Resolve(const EnvironmentLookup& environment,
                                 const Recipe& unnamed = Recipe()) const;

 private:
  void AddFieldsTo(CLI::App& app, const std::string& group);

  std::string format_;
  v1::Recipe fields_;  // those that flags set
  std::string backward_override_;
};

class PlaneFlags {
 public:
  void AddTo(CLI::App& app);
  absl::StatusOr<PlanePolicy> policy() const { return ParsePlanePolicy(policy_); }
  absl::StatusOr<std::vector<BackwardOverride>> future_modes() const;
  bool backward_enabled() const { return !inference_; }
  bool trainable() const { return trainable_; }

 private:
  std::string policy_ = "AUTO";
  std::vector<std::string> future_modes_;
  bool inference_ = false;
  bool trainable_ = false;
};

// "mxfp8(backward_override=dequantized)"; "unknown" for what this build cannot read.
std::string RecipeText(const v1::Recipe& recipe);

}  // namespace planewise

#endif  // PLANEWISE_CLIENTS_CLI_RECIPE_FLAGS_H_
