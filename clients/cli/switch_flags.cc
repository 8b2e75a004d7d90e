#include "clients/cli/switch_flags.h"

#include "core/base/status_macros.h"
#include "proto/recipe/recipe_codec.h"

namespace planewise {

void SwitchFlags::AddTo(CLI::App& app) {
  app.add_option("name", name_, "The model")->required();
  recipe_.AddTo(app, "");
  app.add_flag("--release-unused-planes", release_unused_planes_,
               "Drop the planes that the target does not read");
}

absl::StatusOr<Recipe> SwitchFlags::Target(Client& client) const {
  v1::GetModelRequest request;
  request.set_name(name_);
  PW_ASSIGN_OR_RETURN(const v1::Model model, client.GetModel(request));
  PW_ASSIGN_OR_RETURN(const Recipe current, FromProto(model.recipe(), "recipe"));
  return recipe_.Resolve(ProcessEnvironment, current);
}

}  // namespace planewise
