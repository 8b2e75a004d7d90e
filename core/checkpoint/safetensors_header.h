#ifndef PLANEWISE_CORE_CHECKPOINT_SAFETENSORS_HEADER_H_
#define PLANEWISE_CORE_CHECKPOINT_SAFETENSORS_HEADER_H_
// The header of a safetensors file, parsed strictly: what the reference reader
// refuses is refused, and so are duplicate keys. The bytes are hostile until
// the parse has succeeded; memory stays within a small factor of the header.
//
//   u64le N | N bytes of JSON | tensor bytes, without holes
//
// Not here: reading tensors (safetensors_reader.h), making a header
// (safetensors_writer.h).

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/checkpoint/safetensors_entry.h"

namespace planewise {

// The reference's limit on N.
inline constexpr int64_t kSafetensorsHeaderBytesMax = 100'000'000;
// The length field before the JSON.
inline constexpr int64_t kSafetensorsLengthBytes = 8;

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> tensors;  // by offset
  std::vector<std::pair<std::string, std::string>> metadata;  // "__metadata__", in file order
  int64_t data_offset = 0;  // where tensor bytes begin
};

// N of a file of `file_bytes` whose first 8 bytes are `length_field`.
// INVALID_ARGUMENT / INVALID_CHECKPOINT if the file is shorter than 8 bytes, N
// exceeds the limit, or 8 + N exceeds the file. `path` is for messages.
absl::StatusOr<int64_t> SafetensorsHeaderLength(absl::string_view path, int64_t file_bytes,
                                                absl::string_view length_field);

// The header whose JSON is `json`, of a file of `file_bytes`.
// INVALID_ARGUMENT / INVALID_CHECKPOINT naming file and tensor, observed and
// required: text that is not exactly one JSON object; duplicate keys; unknown
// dtypes; offsets that do not tile the data from its start to the file's end;
// lengths that differ from shape times dtype.
absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(absl::string_view path,
                                                         int64_t file_bytes,
                                                         absl::string_view json);

}  // namespace planewise

#endif  // PLANEWISE_CORE_CHECKPOINT_SAFETENSORS_HEADER_H_
