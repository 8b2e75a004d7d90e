#include "service/store/model_verifier.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"

namespace planewise {
namespace {

void CompareWithRecorded(const std::vector<LiveChecksum>& live,
                         const std::vector<LiveChecksum>& recorded,
                         std::vector<std::string>& findings) {
  if (live.size() != recorded.size()) {
    findings.push_back(absl::StrCat("in memory: ", live.size(), " parts, ", recorded.size(),
                                    " were made"));
    return;
  }
  for (size_t i = 0; i < live.size(); ++i) {
    if (live[i] == recorded[i]) continue;
    findings.push_back(absl::StrFormat("in memory: %s has checksum %016x, was made with %016x",
                                       live[i].part, live[i].checksum, recorded[i].checksum));
  }
}

bool IsStored(ModelStore* store, const std::string& name) {
  if (store == nullptr) return false;
  const std::vector<StoredModel> stored = store->List();
  return std::any_of(stored.begin(), stored.end(),
                     [&](const StoredModel& model) { return model.name == name; });
}

}  // namespace

absl::StatusOr<VerifyOutcome> VerifyModel(const std::string& model, const LiveVersion& live,
                                          ModelStore* store, MemoryBudget& budget,
                                          const TransferControl& control) {
  VerifyOutcome outcome;
  std::vector<LiveChecksum> checksums;
  if (live.version != nullptr) {
    PW_ASSIGN_OR_RETURN(checksums, LiveChecksums(*live.version, control));
    outcome.tensor_count = static_cast<int64_t>(checksums.size());
    for (const LiveChecksum& part : checksums) outcome.checked_bytes += part.length;
    CompareWithRecorded(checksums, *live.recorded, outcome.findings);
  }
  if (IsStored(store, model)) {
    PW_ASSIGN_OR_RETURN(const VerifyReport report, store->Verify(model, budget, control));
    outcome.tensor_count = std::max(outcome.tensor_count, report.tensor_count);
    outcome.checked_bytes += report.checked_bytes;
    for (const VerifyFinding& finding : report.findings) {
      outcome.findings.push_back(absl::StrCat("on disk: ", finding.object, ": ", finding.file,
                                              " at byte ", finding.byte_offset, ": ",
                                              finding.text));
    }
    if (live.version != nullptr && report.findings.empty() &&
        report.version == live.version->version) {
      PW_ASSIGN_OR_RETURN(const Manifest manifest, store->ManifestOf(model));
      for (const std::string& difference : CompareWithManifest(checksums, manifest)) {
        outcome.findings.push_back(absl::StrCat("memory and disk: ", difference));
      }
    }
  }
  outcome.ok = outcome.findings.empty();
  return outcome;
}

}  // namespace planewise
