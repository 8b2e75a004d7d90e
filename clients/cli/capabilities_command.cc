#include "clients/cli/capabilities_command.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "core/base/status_macros.h"
#include "planner/memory_report.h"
#include "planner/text_table.h"

namespace planewise {
namespace {

std::string CapabilitiesTable(const v1::Capabilities& capabilities) {
  TextTable table({{"what"}, {"value"}});
  table.AddRow({"server", capabilities.server_version()});
  table.AddRow({"API", capabilities.api_version()});
  table.AddRow({"store format", absl::StrCat(capabilities.store_format_version())});
  table.AddRow({"formats", absl::StrJoin(capabilities.formats(), ", ")});
  table.AddRow({"backward overrides", absl::StrJoin(capabilities.backward_overrides(), ", ")});
  table.AddRow({"layer kinds", absl::StrJoin(capabilities.layer_kinds(), ", ")});
  table.AddRow({"transports", absl::StrJoin(capabilities.transports(), ", ")});
  for (const v1::BackendCapability& backend : capabilities.backends()) {
    table.AddRow({absl::StrCat("backend ", backend.name()),
                  backend.available() ? backend.device()
                                      : absl::StrCat("unavailable: ", backend.why_not())});
    for (const auto& [format, path] : backend.gemm_path()) {
      table.AddRow({absl::StrCat("  GEMM ", format), path});
    }
  }
  table.AddRow({"memory", absl::StrCat(FormatBytes(capabilities.memory_used_bytes()), " of ",
                                       FormatBytes(capabilities.memory_limit_bytes()))});
  const absl::Duration timeout = absl::Milliseconds(capabilities.session_timeout_ms());
  table.AddRow({"sessions", absl::StrCat("at most ", capabilities.max_sessions(), ", time-out ",
                                         absl::FormatDuration(timeout))});
  table.AddRow({"live versions", absl::StrCat("at most ", capabilities.max_live_versions())});
  table.AddRow({"chunk", FormatBytes(capabilities.chunk_bytes())});
  table.AddRow({"input window", FormatBytes(capabilities.session_input_window_bytes())});
  table.AddRow({"result budget", FormatBytes(capabilities.session_result_budget_bytes())});
  table.AddRow(
      {"saved operands", FormatBytes(capabilities.session_saved_operand_budget_bytes())});
  return table.ToString();
}

absl::StatusOr<ExitCode> Run(const CommonFlags& common) {
  PW_ASSIGN_OR_RETURN(const std::unique_ptr<Client> client, Connect(common));
  const v1::Capabilities& capabilities = client->capabilities();
  Print(common.json() ? JsonText(capabilities) : CapabilitiesTable(capabilities));
  return ExitCode::kOk;
}

}  // namespace

Verb AddCapabilitiesCommand(CLI::App& root, CommonFlags& common) {
  CLI::App* const app =
      root.add_subcommand("capabilities", "Show what the daemon is and can do, and its limits");
  AddConnectionFlags(*app, common);
  return {app, [&common] { return Run(common); }};
}

}  // namespace planewise
