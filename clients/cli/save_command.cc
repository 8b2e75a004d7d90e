#include "clients/cli/save_command.h"

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "planner/memory_report.h"

namespace planewise {
namespace {

absl::StatusOr<ExitCode> Run(const std::string& name, const CommonFlags& common) {
  PW_ASSIGN_OR_RETURN(const std::unique_ptr<Client> client, Connect(common));
  v1::SaveModelRequest request;
  request.set_name(name);
  request.set_request_id(NewRequestId(common));
  absl::StatusOr<v1::SaveResult> result;
  {
    ProgressBar bar;
    result = client->SaveModel(request, WithProgressBar(bar));
  }
  PW_RETURN_IF_ERROR(result.status());
  if (common.json()) {
    Print(JsonText(*result));
  } else if (result->written()) {
    Print(absl::StrCat("version ", result->version(), " is durable: ",
                       FormatBytes(result->written_bytes()), " written to ", result->path(), "\n"));
  } else {
    Print(absl::StrCat("version ", result->version(), " was durable already in ", result->path(),
                       "\n"));
  }
  return ExitCode::kOk;
}

}  // namespace

Verb AddSaveCommand(CLI::App& root, CommonFlags& common) {
  CLI::App* const app =
      root.add_subcommand("save", "Make a model's newest version durable in the daemon's store");
  const auto name = std::make_shared<std::string>();
  app->add_option("name", *name, "The model")->required();
  AddConnectionFlags(*app, common);
  return {app, [name, &common] { return Run(*name, common); }};
}

}  // namespace planewise
