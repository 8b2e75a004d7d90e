#include "clients/cli/delete_command.h"

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "planner/memory_report.h"

namespace planewise {
namespace {

absl::StatusOr<ExitCode> Run(const v1::DeleteModelRequest& flags, const CommonFlags& common) {
  PW_ASSIGN_OR_RETURN(const std::unique_ptr<Client> client, Connect(common));
  v1::DeleteModelRequest request = flags;
  request.set_request_id(NewRequestId(common));
  PW_ASSIGN_OR_RETURN(const v1::DeleteModelResponse response, client->DeleteModel(request));
  if (common.json()) {
    Print(JsonText(response));
  } else {
    Print(absl::StrCat("deleted ", request.name(), ", ", FormatBytes(response.freed_bytes()),
                       " freed\n"));
  }
  return ExitCode::kOk;
}

}  // namespace

Verb AddDeleteCommand(CLI::App& root, CommonFlags& common) {
  CLI::App* const app = root.add_subcommand("delete", "Stop hosting a model");
  app->footer(
      "Without --stored the store keeps what was saved, and a restart hosts it again.\n"
      "Example: planewise delete minilm --stored");
  const auto request = std::make_shared<v1::DeleteModelRequest>();
  app->add_option_function<std::string>(
         "name", [request](const std::string& name) { request->set_name(name); }, "The model")
      ->required();
  app->add_option_function<uint64_t>(
      "--expected-version",
      [request](const uint64_t& version) { request->set_expected_version(version); },
      "Refuse unless this is the newest version");
  app->add_flag_callback(
      "--stored", [request] { request->set_delete_stored(true); },
      "Also delete what the store holds of it");
  AddConnectionFlags(*app, common);
  return {app, [request, &common] { return Run(*request, common); }};
}

}  // namespace planewise
