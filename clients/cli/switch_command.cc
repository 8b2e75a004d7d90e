#include "clients/cli/switch_command.h"

#include "absl/strings/str_cat.h"
#include "clients/cli/switch_flags.h"
#include "clients/cli/switch_table.h"
#include "core/base/status_macros.h"
#include "planner/memory_report.h"
#include "proto/recipe/recipe_codec.h"

namespace planewise {
namespace {

absl::StatusOr<ExitCode> Run(const SwitchFlags& flags, const CommonFlags& common) {
  const absl::Status spelling = flags.CheckSpelling();
  if (!spelling.ok()) return WrongCommandLine(spelling, common);
  PW_ASSIGN_OR_RETURN(const std::unique_ptr<Client> client, Connect(common));
  PW_ASSIGN_OR_RETURN(const Recipe target, flags.Target(*client));
  v1::ValidateModeSwitchRequest validate;
  validate.set_name(flags.name());
  *validate.mutable_target() = ToProto(target);
  validate.set_release_unused_planes(flags.release_unused_planes());
  PW_ASSIGN_OR_RETURN(const v1::ValidateModeSwitchResponse validation,
                      client->ValidateModeSwitch(validate));
  if (!SwitchRuns(validation)) {
    Print(common.json() ? JsonText(validation) : SwitchText(validation, validate.target()));
    return ExitCode::kNegative;
  }

  v1::SwitchModeRequest request;
  request.set_name(flags.name());
  *request.mutable_target() = ToProto(target);
  request.set_fingerprint(validation.fingerprint());
  request.set_release_unused_planes(flags.release_unused_planes());
  request.set_request_id(NewRequestId(common));
  PW_ASSIGN_OR_RETURN(const v1::SwitchModeResponse response, client->SwitchMode(request));
  if (common.json()) {
    Print(JsonText(response));
  } else {
    Print(absl::StrCat(SwitchText(response.validation(), request.target()), "switched to version ",
                       response.version(), ", ", FormatBytes(response.freed_bytes()), " freed\n"));
  }
  return ExitCode::kOk;
}

}  // namespace

Verb AddSwitchCommand(CLI::App& root, CommonFlags& common) {
  CLI::App* const app = root.add_subcommand("switch", "Switch a model to another mode");
  app->footer(
      "Validates first, and refuses if anything moved since.\n"
      "Example: planewise switch minilm --backward-override high_precision\n"
      "Exit code 1: the switch may not run; as `planewise validate` shows.");
  const auto flags = std::make_shared<SwitchFlags>();
  flags->AddTo(*app);
  AddConnectionFlags(*app, common);
  return {app, [flags, &common] { return Run(*flags, common); }};
}

}  // namespace planewise
