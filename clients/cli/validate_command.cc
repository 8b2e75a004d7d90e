#include "clients/cli/validate_command.h"

#include "clients/cli/switch_flags.h"
#include "clients/cli/switch_table.h"
#include "core/base/status_macros.h"
#include "proto/recipe/recipe_codec.h"

namespace planewise {
namespace {

absl::StatusOr<ExitCode> Run(const SwitchFlags& flags, const CommonFlags& common) {
  const absl::Status spelling = flags.CheckSpelling();
  if (!spelling.ok()) return WrongCommandLine(spelling, common);
  PW_ASSIGN_OR_RETURN(const std::unique_ptr<Client> client, Connect(common));
  PW_ASSIGN_OR_RETURN(const Recipe target, flags.Target(*client));
  v1::ValidateModeSwitchRequest request;
  request.set_name(flags.name());
  *request.mutable_target() = ToProto(target);
  request.set_release_unused_planes(flags.release_unused_planes());
  PW_ASSIGN_OR_RETURN(const v1::ValidateModeSwitchResponse response,
                      client->ValidateModeSwitch(request));
  Print(common.json() ? JsonText(response) : SwitchText(response, request.target()));
  return SwitchRuns(response) ? ExitCode::kOk : ExitCode::kNegative;
}

}  // namespace

Verb AddValidateCommand(CLI::App& root, CommonFlags& common) {
  CLI::App* const app =
      root.add_subcommand("validate", "Say what a switch to another mode would need");
  app->footer(
      "Example: planewise validate minilm --backward-override none\n"
      "Exit code 1: the switch may not run; every reason is listed with what would help.");
  const auto flags = std::make_shared<SwitchFlags>();
  flags->AddTo(*app);
  AddConnectionFlags(*app, common);
  return {app, [flags, &common] { return Run(*flags, common); }};
}

}  // namespace planewise
