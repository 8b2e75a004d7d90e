#include "clients/cli/recipe_flags.h"

#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "proto/recipe/recipe_codec.h"

namespace planewise {

void RecipeFlags::AddTo(CLI::App& app, const std::string& default_format) {
  format_ = default_format;
  app.add_option("--recipe", format_,
                 absl::StrCat("Format of the weights: mxfp8, nvfp4, fp8_block, fp8_current, "
                              "fp8_delayed, or none for high precision",
                              default_format.empty() ? " (default: the model's)" : ""))
      ->capture_default_str();
  app.add_option("--backward-override,--backward-mode", backward_override_,
                 "What backward reads: none, high_precision or dequantized (default: "
                 "NVTE_BACKWARD_OVERRIDE or its older spellings, else none)");
  AddFieldsTo(app, default_format.empty()
                       ? "Recipe fields (default: the model's; the format's if --recipe names one)"
                       : "Recipe fields (default: the format's)");
}

void RecipeFlags::AddFieldsTo(CLI::App& app, const std::string& group) {
  const auto add = [&](const char* name, auto value, auto set, const char* help) {
    using Value = decltype(value);
    app.add_option_function<Value>(
           name, [this, set](const Value& given) { set(fields_, given); }, help)
        ->group(group);
  };
  const auto add_flag = [&](const char* names, auto set, const char* help) {
    app.add_flag_function(
           names, [this, set](int64_t count) { set(fields_, count > 0); }, help)
        ->group(group);
  };
  add(
      "--fp8-format", std::string(),
      [](v1::Recipe& fields, const std::string& name) { fields.set_fp8_format(name); },
      "all but nvfp4: elements, e4m3 or hybrid (gradients in E5M2)");
  add(
      "--weight-block-dim", int32_t{},
      [](v1::Recipe& fields, int32_t dimensions) { fields.set_weight_block_dim(dimensions); },
      "mxfp8, nvfp4, fp8_block: blocks of weights have 1 or 2 dimensions");
  add_flag(
      "--power-of-two-scales,!--no-power-of-two-scales",
      [](v1::Recipe& fields, bool on) { fields.set_power_of_two_scales(on); },
      "fp8_block, fp8_current: scales are powers of two");
  add(
      "--amax-epsilon", float{},
      [](v1::Recipe& fields, float epsilon) { fields.set_amax_epsilon(epsilon); },
      "fp8_block, fp8_current: an amax below this counts as this");
  add(
      "--margin", int32_t{}, [](v1::Recipe& fields, int32_t margin) { fields.set_margin(margin); },
      "fp8_delayed: scales are 2^-margin times what the amax asks for");
  add(
      "--amax-history-length", int64_t{},
      [](v1::Recipe& fields, int64_t length) { fields.set_amax_history_length(length); },
      "fp8_delayed: how many steps an amax is remembered");
  add(
      "--amax-algorithm", std::string(),
      [](v1::Recipe& fields, const std::string& name) { fields.set_amax_algorithm(name); },
      "fp8_delayed: the amax taken of the history, max or most_recent");
  add_flag(
      "--hadamard,!--no-hadamard", [](v1::Recipe& fields, bool on) { fields.set_hadamard(on); },
      "nvfp4: column copies of activations and gradients are transformed");
  add_flag(
      "--stochastic-rounding,!--no-stochastic-rounding",
      [](v1::Recipe& fields, bool on) { fields.set_stochastic_rounding(on); },
      "nvfp4: gradients are rounded stochastically");
}

absl::Status RecipeFlags::CheckSpelling(const EnvironmentLookup& environment) const {
  if (!format_.empty()) PW_RETURN_IF_ERROR(ParseFormat(format_).status());
  if (!fields_.fp8_format().empty()) {
    PW_RETURN_IF_ERROR(ParseFp8Format(fields_.fp8_format()).status());
  }
  if (!fields_.amax_algorithm().empty()) {
    PW_RETURN_IF_ERROR(ParseAmaxAlgorithm(fields_.amax_algorithm()).status());
  }
  if (!backward_override_.empty()) return ParseBackwardOverride(backward_override_).status();
  return OverrideFromEnvironment(environment).status();
}

absl::StatusOr<Recipe> RecipeFlags::Resolve(const EnvironmentLookup& environment,
                                            const Recipe& unnamed) const {
  v1::Recipe spelled;
  if (format_.empty()) {
    spelled = ToProto(unnamed);
    spelled.clear_backward_override();
  } else {
    spelled.set_format(format_);
  }
  spelled.MergeFrom(fields_);
  PW_ASSIGN_OR_RETURN(Recipe recipe, FromProto(spelled, "recipe"));
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

std::string RecipeText(const v1::Recipe& recipe) {
  const absl::StatusOr<Recipe> known = FromProto(recipe, "recipe");
  return known.ok() ? known->ToString() : "unknown";
}

}  // namespace planewise
