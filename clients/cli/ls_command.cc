#include "clients/cli/ls_command.h"

#include "clients/cli/model_table.h"
#include "core/base/status_macros.h"

namespace planewise {
namespace {

absl::StatusOr<ExitCode> Run(const CommonFlags& common) {
  PW_ASSIGN_OR_RETURN(const std::unique_ptr<Client> client, Connect(common));
  v1::ListModelsResponse all;
  v1::ListModelsRequest request;
  do {
    PW_ASSIGN_OR_RETURN(const v1::ListModelsResponse page, client->ListModels(request));
    all.mutable_models()->MergeFrom(page.models());
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  Print(common.json() ? JsonText(all) : ModelsTable(all));
  return ExitCode::kOk;
}

}  // namespace

Verb AddLsCommand(CLI::App& root, CommonFlags& common) {
  CLI::App* const app = root.add_subcommand("ls", "List the hosted models");
  AddConnectionFlags(*app, common);
  return {app, [&common] { return Run(common); }};
}

}  // namespace planewise
