#ifndef PLANEWISE_CORE_CHECKPOINT_STORE_POINTER_H_
#define PLANEWISE_CORE_CHECKPOINT_STORE_POINTER_H_
// The two files that decide: CURRENT, which manifest is a model's durable one,
// and VERSIONS, which version numbers were never given out.

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/strong_int.h"

namespace planewise {

struct CurrentPointer {
  // Names the manifest's file. 0: nothing of the model is acknowledged, because
  // its first save or its removal is under way; the rest is 0 then too.
  WeightVersion version;
  int64_t manifest_bytes = 0;      // of that file
  uint64_t manifest_checksum = 0;  // XXH3, 64 bits, of that file

  bool operator==(const CurrentPointer&) const = default;
};

// Whole files. Decoding fails as DecodeRecord; `path` is for messages.
std::string EncodeCurrent(const CurrentPointer& current);
absl::StatusOr<CurrentPointer> DecodeCurrent(absl::string_view path, absl::string_view bytes);

// `next`: the smallest number that was never given out; not 0.
std::string EncodeVersions(WeightVersion next);
absl::StatusOr<WeightVersion> DecodeVersions(absl::string_view path, absl::string_view bytes);

}  // namespace planewise

#endif  // PLANEWISE_CORE_CHECKPOINT_STORE_POINTER_H_
