#include "clients/cli/recipe_flags.h"

#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"

namespace planewise {

void RecipeFlags::AddTo(CLI::App& app, const std::string& default_format) {
  format_ = default_format;
  app.add_option("--recipe", format_,
                 absl::StrCat("Format of the weights: mxfp8, or none for high precision",
                              default_format.empty() ? " (default: the model's)" : ""))
      ->capture_default_str();
  app.add_option("--backward-override,--backward-mode", backward_override_,
                 "What backward reads: none, high_precision or dequantized (default: "
                 "NVTE_BACKWARD_OVERRIDE or its older spellings, else none)");
}

absl::Status RecipeFlags::CheckSpelling(const EnvironmentLookup& environment) const {
  if (!format_.empty()) PW_RETURN_IF_ERROR(ParseFormat(format_).status());
  if (!backward_override_.empty()) return ParseBackwardOverride(backward_override_).status();
  return OverrideFromEnvironment(environment).status();
}

absl::StatusOr<Recipe> RecipeFlags::Resolve(const EnvironmentLookup& environment,
                                            Format unset_format) const {
  Format format = unset_format;
  if (!format_.empty()) {
    PW_ASSIGN_OR_RETURN(format, ParseFormat(format_));
  }
  Recipe recipe = DefaultRecipe(format);
  if (!backward_override_.empty()) {
    PW_ASSIGN_OR_RETURN(recipe.backward_override, ParseBackwardOverride(backward_override_));
    PW_RETURN_IF_ERROR(CheckRecipe(recipe));
    return recipe;
  }
  PW_ASSIGN_OR_RETURN(const std::optional<EnvironmentOverride> from_environment,
                      OverrideFromEnvironment(environment));
  if (from_environment.has_value()) recipe.backward_override = from_environment->value;
  const absl::Status legal = CheckRecipe(recipe);
  if (!legal.ok() && from_environment.has_value()) {
    return Annotate(legal, absl::StrCat("environment variable ", from_environment->variable,
                                        " (unset it, or pass --backward-override)"));
  }
  PW_RETURN_IF_ERROR(legal);
  return recipe;
}

void PlaneFlags::AddTo(CLI::App& app) {
  app.add_option("--policy", policy_,
                 "Planes to keep: AUTO (inferred from the recipe), BOTH or ROW_ONLY")
      ->capture_default_str();
  app.add_option("--future-mode", future_modes_,
                 "A backward override that AUTO keeps the planes for (repeatable)");
  app.add_flag("--inference", inference_, "No backward will ever run");
  app.add_flag("--trainable", trainable_, "Weight gradients will be asked for");
}

absl::StatusOr<std::vector<BackwardOverride>> PlaneFlags::future_modes() const {
  std::vector<BackwardOverride> modes;
  for (const std::string& name : future_modes_) {
    PW_ASSIGN_OR_RETURN(const BackwardOverride mode, ParseBackwardOverride(name));
    modes.push_back(mode);
  }
  return modes;
}

v1::BackwardOverride ToProto(BackwardOverride value) {
  switch (value) {
    case BackwardOverride::kNone: return v1::BACKWARD_OVERRIDE_NONE;
    case BackwardOverride::kHighPrecision: return v1::BACKWARD_OVERRIDE_HIGH_PRECISION;
    case BackwardOverride::kDequantized: return v1::BACKWARD_OVERRIDE_DEQUANTIZED;
  }
  return v1::BACKWARD_OVERRIDE_UNSPECIFIED;
}

v1::PlanePolicy ToProto(PlanePolicy policy) {
  switch (policy) {
    case PlanePolicy::kAuto: return v1::PLANE_POLICY_AUTO;
    case PlanePolicy::kBoth: return v1::PLANE_POLICY_BOTH;
    case PlanePolicy::kRowOnly: return v1::PLANE_POLICY_ROW_ONLY;
  }
  return v1::PLANE_POLICY_UNSPECIFIED;
}

v1::Recipe ToProto(const Recipe& recipe) {
  v1::Recipe proto;
  proto.set_format(std::string(Name(recipe.format)));
  proto.set_backward_override(ToProto(recipe.backward_override));
  return proto;
}

std::string RecipeText(const v1::Recipe& recipe) {
  const absl::StatusOr<Format> format = ParseFormat(recipe.format());
  if (!format.ok()) return "unknown";
  Recipe value = DefaultRecipe(*format);
  for (const BackwardOverride candidate :
       {BackwardOverride::kHighPrecision, BackwardOverride::kDequantized}) {
    if (recipe.backward_override() == ToProto(candidate)) value.backward_override = candidate;
  }
  return value.ToString();
}

}  // namespace planewise
