#ifndef PLANEWISE_CLIENTS_CLI_SWITCH_FLAGS_H_
#define PLANEWISE_CLIENTS_CLI_SWITCH_FLAGS_H_
// What `validate` and `switch` share: which model, to which mode.

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "clients/cli/recipe_flags.h"
#include "clients/cli/verb.h"

namespace planewise {

class SwitchFlags {
 public:
  void AddTo(CLI::App& app);

  const std::string& name() const { return name_; }
  bool release_unused_planes() const { return release_unused_planes_; }

  absl::Status CheckSpelling() const { return recipe_.CheckSpelling(ProcessEnvironment); }

  // The target. What of the recipe is not named is the model's, which is asked for.
  absl::StatusOr<Recipe> Target(Client& client) const;

 private:
  std::string name_;
  bool release_unused_planes_ = false;
  RecipeFlags recipe_;
};

}  // namespace planewise

#endif  // PLANEWISE_CLIENTS_CLI_SWITCH_FLAGS_H_
