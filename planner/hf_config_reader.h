#ifndef PLANEWISE_PLANNER_HF_CONFIG_READER_H_
#define PLANEWISE_PLANNER_HF_CONFIG_READER_H_
// Reads the text of a Hugging Face config.json. An absent key takes the
// documented default of its configuration class and nothing else; what is not
// known is an error or is listed, never guessed.
//
// Not here: reading the file; tensors (tensor_inventory.h).

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "planner/model_config.h"

namespace planewise {

// A config.json is a few KB; this leaves room for long label lists.
inline constexpr int64_t kConfigBytesMax = 4 << 20;
inline constexpr int kConfigDepthMax = 32;

// INVALID_ARGUMENT with
//   UNKNOWN_ARCHITECTURE: "architectures" is absent or not one of the known
//     ones, which are listed; or a key has a value that would change the
//     tensors in a way that is not known;
//   INVALID_CHECKPOINT: not JSON, too long or deep, a key twice, a key of the
//     wrong type, dimensions that do not agree;
//   DTYPE_UNSUPPORTED: a dtype other than float32, float16, bfloat16.
// UNIMPLEMENTED / NOT_SUPPORTED if it holds a quantization_config.
absl::StatusOr<ModelConfig> ReadHfConfig(absl::string_view json);

}  // namespace planewise

#endif  // PLANEWISE_PLANNER_HF_CONFIG_READER_H_
