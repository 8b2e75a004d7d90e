#ifndef PLANEWISE_CORE_CHECKPOINT_MANIFEST_CODEC_H_
#define PLANEWISE_CORE_CHECKPOINT_MANIFEST_CODEC_H_
// Bytes of a manifest file and back (FORMAT.md, "Manifest"). A manifest has
// exactly one encoding.

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/checkpoint/manifest.h"

namespace planewise {

// A whole file.
std::string EncodeManifest(const Manifest& manifest);

// The manifest that `bytes`, all of the file `path`, hold. Its invariants hold.
// DATA_LOSS / CORRUPT_FILE or CHECKSUM_MISMATCH with file and byte offset;
// UNIMPLEMENTED / NOT_SUPPORTED if a newer format version wrote it.
absl::StatusOr<Manifest> DecodeManifest(absl::string_view path, absl::string_view bytes);

}  // namespace planewise

#endif  // PLANEWISE_CORE_CHECKPOINT_MANIFEST_CODEC_H_
