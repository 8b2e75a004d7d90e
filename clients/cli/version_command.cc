#include "clients/cli/version_command.h"

#include "absl/strings/str_cat.h"
#include "clients/cli/cli_version.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/format_constants.h"
#include "nlohmann/json.hpp"
#include "proto/version/api_version.h"

namespace planewise {
namespace {

absl::StatusOr<ExitCode> Run(bool with_daemon, const CommonFlags& common) {
  nlohmann::ordered_json versions = {
      {"planewise", std::string(kCliVersion)},
      {"api", std::string(kApiVersion)},
      {"store_format", kStoreFormatVersion},
  };
  if (with_daemon) {
    PW_ASSIGN_OR_RETURN(const std::unique_ptr<Client> client, Connect(common));
    versions["daemon"] = client->capabilities().server_version();
    versions["daemon_api"] = client->capabilities().api_version();
  }
  if (common.json()) {
    Print(absl::StrCat(versions.dump(2), "\n"));
    return ExitCode::kOk;
  }
  for (const auto& [what, version] : versions.items()) {
    Print(absl::StrCat(what, " ", version.is_string() ? version.get<std::string>() : version.dump(),
                       "\n"));
  }
  return ExitCode::kOk;
}

}  // namespace

Verb AddVersionCommand(CLI::App& root, CommonFlags& common) {
  CLI::App* const app =
      root.add_subcommand("version", "Show the versions of program, API and store format");
  const auto with_daemon = std::make_shared<bool>(false);
  app->add_flag("--daemon", *with_daemon, "Ask the daemon for its own, too");
  AddConnectionFlags(*app, common);
  return {app, [with_daemon, &common] { return Run(*with_daemon, common); }};
}

}  // namespace planewise
