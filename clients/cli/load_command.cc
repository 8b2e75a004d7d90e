#include "clients/cli/load_command.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "clients/cli/model_table.h"
#include "clients/cli/recipe_flags.h"
#include "core/base/status_macros.h"
#include "proto/recipe/recipe_codec.h"

namespace planewise {
namespace {

struct LoadFlags {
  std::string name;
  std::string source;
  bool format_non_finite = false;
  bool validate_only = false;
  RecipeFlags recipe;
  PlaneFlags planes;
};

absl::StatusOr<v1::CreateModelRequest> RequestOf(const LoadFlags& flags) {
  v1::CreateModelRequest request;
  request.set_name(flags.name);
  // The daemon has another working directory.
  request.set_source_path(std::filesystem::absolute(flags.source).lexically_normal().string());
  PW_ASSIGN_OR_RETURN(const Recipe recipe, flags.recipe.Resolve(ProcessEnvironment));
  *request.mutable_recipe() = ToProto(recipe);
  PW_ASSIGN_OR_RETURN(const PlanePolicy policy, flags.planes.policy());
  request.set_plane_policy(ToProto(policy));
  PW_ASSIGN_OR_RETURN(const std::vector<BackwardOverride> modes, flags.planes.future_modes());
  for (const BackwardOverride mode : modes) request.add_future_modes(ToProto(mode));
  request.set_backward_enabled(flags.planes.backward_enabled());
  request.set_trainable(flags.planes.trainable());
  request.set_non_finite_policy(flags.format_non_finite ? v1::NON_FINITE_POLICY_FORMAT
                                                        : v1::NON_FINITE_POLICY_REJECT);
  request.set_validate_only(flags.validate_only);
  return request;
}

absl::StatusOr<ExitCode> Run(const LoadFlags& flags, const CommonFlags& common) {
  absl::StatusOr<v1::CreateModelRequest> request = RequestOf(flags);
  if (!request.ok()) return WrongCommandLine(request.status(), common);
  PW_ASSIGN_OR_RETURN(const std::unique_ptr<Client> client, Connect(common));
  request->set_request_id(NewRequestId(common));
  absl::StatusOr<v1::Model> model;
  {
    ProgressBar bar;
    model = client->CreateModel(*request, WithProgressBar(bar));
  }
  PW_RETURN_IF_ERROR(model.status());
  if (common.json()) {
    Print(JsonText(*model));
  } else {
    Print(
        absl::StrCat(flags.validate_only ? "would be loaded\n" : "loaded\n", ModelSummary(*model)));
  }
  return ExitCode::kOk;
}

}  // namespace

Verb AddLoadCommand(CLI::App& root, CommonFlags& common) {
  CLI::App* const app =
      root.add_subcommand("load", "Load a Hugging Face directory into the daemon");
  app->footer("Example: planewise load minilm ./MiniLM --backward-override dequantized");
  const auto flags = std::make_shared<LoadFlags>();
  app->add_option("name", flags->name, "Name to host it under")->required();
  app->add_option("source", flags->source,
                  "Directory with config.json and safetensors, on the daemon's disk")
      ->required();
  flags->recipe.AddTo(*app, "mxfp8");
  flags->planes.AddTo(*app);
  app->add_flag("--format-non-finite", flags->format_non_finite,
                "Quantize NaN and infinity as the format does, instead of refusing them");
  app->add_flag("--validate-only", flags->validate_only, "Plan and admit, load nothing");
  AddConnectionFlags(*app, common);
  return {app, [flags, &common] { return Run(*flags, common); }};
}

}  // namespace planewise
