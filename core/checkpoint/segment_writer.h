#ifndef PLANEWISE_CORE_CHECKPOINT_SEGMENT_WRITER_H_
#define PLANEWISE_CORE_CHECKPOINT_SEGMENT_WRITER_H_
// Writes the arrays of a version to segment files: straight from the buffers
// they live in, checksums taken on the way.

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/file_system.h"
#include "core/base/strong_int.h"
#include "core/checkpoint/live_parts.h"
#include "core/checkpoint/transfer.h"

namespace planewise {

// Most parts of a segment: keeps its header under 25 MB, the limit of readers.
inline constexpr int64_t kSegmentPartsMax = 100'000;

// Writes `parts` to new segments of `version` in `directory`, each durable
// before the next is begun; a weight's parts share a segment, which is closed
// once it holds `target_bytes`. INVALID_ARGUMENT for names that a segment cannot
// hold; else as FileSystem and TransferMeter::Advance. On failure whole and
// temporary files may be left.
absl::StatusOr<StoredParts> WriteSegments(FileSystem& file_system, absl::string_view directory,
                                          WeightVersion version,
                                          const std::vector<LivePart>& parts,
                                          int64_t target_bytes, TransferMeter& meter);

}  // namespace planewise

#endif  // PLANEWISE_CORE_CHECKPOINT_SEGMENT_WRITER_H_
