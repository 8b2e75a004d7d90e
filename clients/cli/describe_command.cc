#include "clients/cli/describe_command.h"

#include "absl/strings/str_cat.h"
#include "clients/cli/model_table.h"
#include "core/base/status_macros.h"

namespace planewise {
namespace {

absl::StatusOr<ExitCode> Run(const std::string& name, const CommonFlags& common) {
  PW_ASSIGN_OR_RETURN(const std::unique_ptr<Client> client, Connect(common));
  v1::GetModelRequest request;
  request.set_name(name);
  PW_ASSIGN_OR_RETURN(const v1::Model model, client->GetModel(request));
  if (common.json()) {
    Print(JsonText(model));
  } else {
    Print(absl::StrCat(ModelSummary(model), LocalText(model), "\n", LayersTable(model)));
  }
  return ExitCode::kOk;
}

}  // namespace

Verb AddDescribeCommand(CLI::App& root, CommonFlags& common) {
  CLI::App* const app =
      root.add_subcommand("describe", "Show a hosted model: plan against allocated bytes");
  app->footer("Example: planewise describe minilm");
  const auto name = std::make_shared<std::string>();
  app->add_option("name", *name, "The model")->required();
  AddConnectionFlags(*app, common);
  return {app, [name, &common] { return Run(*name, common); }};
}

}  // namespace planewise
