#include "clients/cli/verify_command.h"

#include <cstdint>
#include <limits>
#include <memory>

#include "absl/strings/str_cat.h"
#include "core/base/posix_file_system.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/model_store.h"
#include "core/tensor/memory_budget.h"
#include "planner/memory_report.h"

namespace planewise {
namespace {

struct VerifyFlags {
  std::string name;
  std::string store;
};

// Loaded bytes against their checksums, and the store's files, by the daemon.
absl::StatusOr<v1::VerifyResult> VerifyHosted(const VerifyFlags& flags,
                                              const CommonFlags& common) {
  PW_ASSIGN_OR_RETURN(const std::unique_ptr<Client> client, Connect(common));
  v1::VerifyModelRequest request;
  request.set_name(flags.name);
  ProgressBar bar;
  return client->VerifyModel(request, WithProgressBar(bar));
}

// The files of a store, without a daemon.
absl::StatusOr<v1::VerifyResult> VerifyStored(const VerifyFlags& flags) {
  PW_ASSIGN_OR_RETURN(const std::unique_ptr<ModelStore> store,
                      ModelStore::Open(PosixFileSystem(), flags.store, StoreAccess::kReadOnly));
  ProgressBar bar;
  TransferControl control;
  control.on_progress = [&bar](const TransferProgress& progress) {
    bar.Show("verify", progress.object, progress.done_bytes, progress.total_bytes);
  };
  // One plane in memory at a time; this process holds nothing else.
  const std::shared_ptr<MemoryBudget> budget =
      MemoryBudget::Create(std::numeric_limits<int64_t>::max());
  PW_ASSIGN_OR_RETURN(const VerifyReport report, store->Verify(flags.name, *budget, control));
  v1::VerifyResult result;
  result.set_ok(report.findings.empty());
  result.set_checked_bytes(report.checked_bytes);
  result.set_tensor_count(report.tensor_count);
  for (const VerifyFinding& finding : report.findings) {
    result.add_findings(absl::StrCat(finding.object, " in ", finding.file, " at byte ",
                                     finding.byte_offset, ": ", finding.text));
  }
  return result;
}

std::string ResultText(const v1::VerifyResult& result) {
  std::string text = absl::StrCat(result.ok() ? "ok" : "DAMAGED", ": ", result.tensor_count(),
                                  " tensors, ", FormatBytes(result.checked_bytes()), " checked\n");
  for (const std::string& finding : result.findings()) absl::StrAppend(&text, finding, "\n");
  return text;
}

absl::StatusOr<ExitCode> Run(const VerifyFlags& flags, const CommonFlags& common) {
  PW_ASSIGN_OR_RETURN(const v1::VerifyResult result,
                      flags.store.empty() ? VerifyHosted(flags, common) : VerifyStored(flags));
  Print(common.json() ? JsonText(result) : ResultText(result));
  return result.ok() ? ExitCode::kOk : ExitCode::kNegative;
}

}  // namespace

Verb AddVerifyCommand(CLI::App& root, CommonFlags& common) {
  CLI::App* const app = root.add_subcommand(
      "verify", "Check that every byte of a model is the one that was written");
  app->footer(
      "Example: planewise verify minilm\n"
      "         planewise verify minilm --store ./store    (no daemon may have it open)\n"
      "Exit code 1: damage was found; every finding is listed.");
  const auto flags = std::make_shared<VerifyFlags>();
  app->add_option("name", flags->name, "The model")->required();
  app->add_option("--store", flags->store, "Read this store instead of asking a daemon");
  AddConnectionFlags(*app, common);
  return {app, [flags, &common] { return Run(*flags, common); }};
}

}  // namespace planewise
