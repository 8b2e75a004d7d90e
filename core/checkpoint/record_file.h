#ifndef PLANEWISE_CORE_CHECKPOINT_RECORD_FILE_H_
#define PLANEWISE_CORE_CHECKPOINT_RECORD_FILE_H_
// The frame of the store's small files: kind, format version, length and
// checksum around a body (FORMAT.md, "Records"). The frame is the same in every
// format version, so that damage and a newer format are told apart.
//
// Not here: bodies (store_pointer.h, manifest_codec.h).

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace planewise {

// Bytes before the body, and around it.
inline constexpr int64_t kRecordBodyOffset = 24;
inline constexpr int64_t kRecordFrameBytes = 32;

// `magic` has 8 bytes.
std::string EncodeRecord(absl::string_view magic, absl::string_view body);

// The body within `bytes`, all of the file `path`.
// DATA_LOSS / CORRUPT_FILE or CHECKSUM_MISMATCH with file and byte offset;
// UNIMPLEMENTED / NOT_SUPPORTED if a newer format version wrote it.
absl::StatusOr<absl::string_view> DecodeRecord(absl::string_view path, absl::string_view magic,
                                               absl::string_view bytes);

}  // namespace planewise

#endif  // PLANEWISE_CORE_CHECKPOINT_RECORD_FILE_H_
