#include "core/checkpoint/live_checksums.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/format_constants.h"
#include "core/checkpoint/live_parts.h"
#include "core/checkpoint/streaming_checksum.h"

namespace planewise {

absl::StatusOr<std::vector<LiveChecksum>> LiveChecksums(const ModelVersion& version,
                                                        const TransferControl& control) {
  TransferMeter meter(control, absl::StrCat("checksums of model \"", version.model, "\""),
                      version.stored_bytes());
  std::vector<LiveChecksum> checksums;
  for (const LivePart& part : LivePartsOf(version)) {
    absl::Span<const std::byte> bytes = part.bytes();
    LiveChecksum& result = checksums.emplace_back();
    result.part = part.name();
    result.length = static_cast<int64_t>(bytes.size());
    StreamingChecksum checksum;
    do {
      const absl::Span<const std::byte> piece =
          bytes.subspan(0, static_cast<size_t>(kTransferBytes));
      checksum.Update(piece);
      bytes.remove_prefix(piece.size());
      PW_RETURN_IF_ERROR(meter.Advance(result.part, static_cast<int64_t>(piece.size())));
    } while (!bytes.empty());
    result.checksum = checksum.Finish();
  }
  return checksums;
}

std::vector<std::string> CompareWithManifest(const std::vector<LiveChecksum>& live,
                                             const Manifest& manifest) {
  std::vector<std::string> differences;
  absl::flat_hash_map<std::string, const StoredPart*> stored;
  for (const StoredPartView& part : manifest.Parts()) stored[part.name()] = part.stored;
  for (const LiveChecksum& checksum : live) {
    const auto found = stored.find(checksum.part);
    if (found == stored.end()) {
      differences.push_back(absl::StrCat(checksum.part, ": not in the manifest"));
      continue;
    }
    const StoredPart& part = *found->second;
    if (checksum.length != part.length) {
      differences.push_back(absl::StrCat(checksum.part, ": ", checksum.length,
                                         " bytes in memory, ", part.length, " stored"));
    } else if (checksum.checksum != part.checksum) {
      differences.push_back(absl::StrFormat("%s: checksum %016x in memory, %016x stored",
                                            checksum.part, checksum.checksum, part.checksum));
    }
    stored.erase(found);
  }
  for (const auto& [name, part] : stored) {
    differences.push_back(absl::StrCat(name, ": not in memory"));
  }
  std::sort(differences.begin(), differences.end());
  return differences;
}

}  // namespace planewise
