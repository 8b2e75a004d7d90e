#ifndef PLANEWISE_CORE_CHECKPOINT_SAFETENSORS_JSON_H_
#define PLANEWISE_CORE_CHECKPOINT_SAFETENSORS_JSON_H_
// The JSON of a safetensors header as a list of entries, event by event and
// without a document tree, so that hostile text costs no more than its size.
//
// Not here: how entries relate to each other and to the file
// (safetensors_header.h).

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/checkpoint/safetensors_entry.h"

namespace planewise {

// Most tensors of one file; a 671 B parameter model has 91,991 over 163 files.
inline constexpr int64_t kSafetensorsTensorsMax = 1'000'000;

// The key that is not a tensor's name.
inline constexpr absl::string_view kSafetensorsMetadataKey = "__metadata__";

struct SafetensorsJson {
  std::vector<SafetensorsEntry> tensors;  // in file order; offsets within the data
  std::vector<std::pair<std::string, std::string>> metadata;
};

// Reads `json`, the header of a file with `data_bytes` after it.
// INVALID_ARGUMENT / INVALID_CHECKPOINT for all that is wrong with one entry:
// syntax, types, a doubled key within it, a dtype that is not known, offsets
// outside the data; and when entries together claim more than the data. Names
// are not compared with each other.
absl::StatusOr<SafetensorsJson> ParseSafetensorsJson(absl::string_view path, int64_t data_bytes,
                                                     absl::string_view json);

// `name` for messages and metadata: escaped, and cut where it is very long.
std::string ShownTensorName(absl::string_view name);

}  // namespace planewise

#endif  // PLANEWISE_CORE_CHECKPOINT_SAFETENSORS_JSON_H_
