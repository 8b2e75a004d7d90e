#ifndef PLANEWISE_CORE_CHECKPOINT_VERSION_VERIFIER_H_
#define PLANEWISE_CORE_CHECKPOINT_VERSION_VERIFIER_H_
// Reads every byte that a manifest describes and says what is wrong with it:
// lengths, checksums, the segments' own headers, padding, scales that are not
// numbers, recorded exponents. Holds one plane at a time.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/file_system.h"
#include "core/base/strong_int.h"
#include "core/checkpoint/manifest.h"
#include "core/checkpoint/transfer.h"
#include "core/tensor/memory_budget.h"

namespace planewise {

struct VerifyFinding {
  std::string object;  // the part, or the segment's file name
  std::string file;    // its path
  int64_t byte_offset = 0;
  std::string text;

  bool operator==(const VerifyFinding&) const = default;
};

// The finding that a DATA_LOSS status of the store is.
VerifyFinding FindingOf(std::string object, const absl::Status& damage);

struct VerifyReport {
  WeightVersion version;
  int64_t checked_bytes = 0;
  int64_t tensor_count = 0;             // parts: payloads and scales
  std::vector<VerifyFinding> findings;  // empty: all is well
  absl::Status damage;                  // OK: every byte is as written; else the first that is not
};

// `segments` is the model's segments directory. RESOURCE_EXHAUSTED for the
// memory of the largest plane (MemoryUse::kTransient); CANCELLED; UNAVAILABLE if
// the disk fails to read. Damage is in the report.
absl::StatusOr<VerifyReport> VerifyVersion(FileSystem& file_system, absl::string_view segments,
                                           const Manifest& manifest, MemoryBudget& budget,
                                           const TransferControl& control);

}  // namespace planewise

#endif  // PLANEWISE_CORE_CHECKPOINT_VERSION_VERIFIER_H_
