#ifndef PLANEWISE_CORE_CHECKPOINT_HF_INDEX_H_
#define PLANEWISE_CORE_CHECKPOINT_HF_INDEX_H_
// model.safetensors.index.json: which file holds which tensor.
//
// Not here: whether the files hold what it says (hf_directory.h).

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace planewise {

// Tensor name and file name, by tensor name.
using HfWeightMap = std::vector<std::pair<std::string, std::string>>;

// Of the text of the index at `path`. INVALID_ARGUMENT / INVALID_CHECKPOINT:
// not one JSON object without doubled keys; no weight_map of strings; a file
// name that is not a plain *.safetensors name in the same directory; files
// numbered "i of n" of which some are not named. The sizes it states are
// ignored: writers differ in what they count.
absl::StatusOr<HfWeightMap> ParseHfIndex(absl::string_view path, absl::string_view text);

}  // namespace planewise

#endif  // PLANEWISE_CORE_CHECKPOINT_HF_INDEX_H_
