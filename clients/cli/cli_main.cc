// planewise: the command line. One verb a file; this one lists them.

#include <cstdio>
#include <vector>

#include "CLI/CLI.hpp"
#include "clients/cli/capabilities_command.h"
#include "clients/cli/delete_command.h"
#include "clients/cli/describe_command.h"
#include "clients/cli/get_command.h"
#include "clients/cli/load_command.h"
#include "clients/cli/ls_command.h"
#include "clients/cli/plan_command.h"
#include "clients/cli/save_command.h"
#include "clients/cli/switch_command.h"
#include "clients/cli/validate_command.h"
#include "clients/cli/verb.h"
#include "clients/cli/verify_command.h"
#include "clients/cli/version_command.h"

namespace planewise {
namespace {

using AddVerb = Verb (*)(CLI::App&, CommonFlags&);

// In the order that --help shows: before, during and after hosting a model.
constexpr AddVerb kVerbs[] = {
    AddPlanCommand,     AddLoadCommand, AddLsCommand,     AddDescribeCommand,
    AddValidateCommand, AddSwitchCommand, AddSaveCommand, AddVerifyCommand,
    AddGetCommand,      AddDeleteCommand, AddCapabilitiesCommand, AddVersionCommand,
};

ExitCode Main(int argc, char** argv) {
  CLI::App app(
      "Plans, hosts and checks quantized primary weights for training.\n"
      "`planewise VERB --help` shows each verb's flags.",
      "planewise");
  app.footer(
      "Exit codes: 0 done; 1 refused (does not fit, may not switch, damaged, or the daemon said "
      "no); 2 wrong command line; 3 no daemon there.\n"
      "Errors go to stderr; with --output json also to stdout as {\"error\": ...}.");
  app.require_subcommand(1);
  CommonFlags common;
  std::vector<Verb> verbs;
  for (const AddVerb add : kVerbs) verbs.push_back(add(app, common));

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {  // CLI11 reports by exception, --help too.
    return app.exit(error) == 0 ? ExitCode::kOk : ExitCode::kUsage;
  }
  for (const Verb& verb : verbs) {
    if (!verb.app->parsed()) continue;
    const absl::StatusOr<ExitCode> code = verb.run();
    if (code.ok()) return *code;
    PrintError(code.status(), common);
    return ExitCodeOf(code.status());
  }
  return ExitCode::kUsage;
}

}  // namespace
}  // namespace planewise

int main(int argc, char** argv) { return static_cast<int>(planewise::Main(argc, argv)); }
