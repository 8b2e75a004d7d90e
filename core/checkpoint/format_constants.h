#ifndef PLANEWISE_CORE_CHECKPOINT_FORMAT_CONSTANTS_H_
#define PLANEWISE_CORE_CHECKPOINT_FORMAT_CONSTANTS_H_
// Names, magic numbers and limits of the native store. FORMAT.md is the format;
// this is the part of it that code needs as values.

#include <cstdint>

#include "absl/strings/string_view.h"

namespace planewise {

// Version of everything below <root>. A reader refuses a newer one.
inline constexpr int64_t kStoreFormatVersion = 1;

// Names below <root> and below <root>/models/<model>.
inline constexpr absl::string_view kLockFile = "LOCK";
inline constexpr absl::string_view kVersionsFile = "VERSIONS";
inline constexpr absl::string_view kModelsDirectory = "models";
inline constexpr absl::string_view kCurrentFile = "CURRENT";
inline constexpr absl::string_view kManifestsDirectory = "manifests";
inline constexpr absl::string_view kSegmentsDirectory = "segments";
inline constexpr absl::string_view kTemporarySuffix = ".tmp";

// First bytes of each kind of record file (record_file.h).
inline constexpr absl::string_view kManifestMagic = "PWMANIF1";
inline constexpr absl::string_view kCurrentMagic = "PWCURRN1";
inline constexpr absl::string_view kVersionsMagic = "PWVERSN1";

inline constexpr int64_t kModelNameBytesMax = 128;

// Bodies of manifests; a part of a weight takes about 120 bytes.
inline constexpr int64_t kManifestBytesMax = int64_t{1} << 30;
// Far more than CURRENT and VERSIONS have.
inline constexpr int64_t kPointerBytesMax = 4096;

// A segment takes no further weight once it holds this much. Large enough that
// one sync covers seconds of writing, small enough to be rewritten when most of
// it is dead.
inline constexpr int64_t kSegmentBytesTarget = int64_t{4} << 30;

// Unit of reading and writing. Fits the second-level cache beside its
// destination, so that checksums read it from there.
inline constexpr int64_t kTransferBytes = 1 << 20;

// Version numbers that one reservation may take.
inline constexpr int64_t kReservedVersionsMax = 1 << 16;

}  // namespace planewise

#endif  // PLANEWISE_CORE_CHECKPOINT_FORMAT_CONSTANTS_H_
