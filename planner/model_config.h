#ifndef PLANEWISE_PLANNER_MODEL_CONFIG_H_
#define PLANEWISE_PLANNER_MODEL_CONFIG_H_
// What an architecture needs to know to list its tensors, free of any
// framework's spelling. A plain value: readers of foreign configs fill it,
// tensor_inventory.h turns it into tensors.
//
// Not here: Hugging Face keys and their defaults (hf_config_reader.h).

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/numeric/dtype.h"

namespace planewise {

// How layers are built and named.
enum class ModelFamily : uint8_t { kBert, kLlama, kMistral, kQwen2, kQwen3 };

absl::string_view Name(ModelFamily family);  // as Hugging Face's model_type

// What stands on top of the base model.
enum class ModelHead : uint8_t {
  kNone,      // the base model alone: tensors have no base prefix
  kCausalLm,  // lm_head [vocab, hidden]
};

// Bounds on what a config may ask for, far above real models. With them no sum
// of bytes overflows: a matrix has at most 2^44 elements, a model fewer than
// 2^15 tensors, an element at most 2^3 bytes over all its copies.
inline constexpr int64_t kModelLayersMax = 1024;
inline constexpr int64_t kModelDimensionMax = int64_t{1} << 22;

struct ModelConfig {
  std::string architecture;  // for example "LlamaForCausalLM"
  ModelFamily family = ModelFamily::kLlama;
  ModelHead head = ModelHead::kNone;
  int64_t layers = 0;
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  int64_t attention_heads = 0;
  int64_t key_value_heads = 0;
  int64_t head_dim = 0;
  int64_t vocab_size = 0;
  int64_t positions = 0;    // learned position embeddings; 0: none
  int64_t token_types = 0;  // token type embeddings; 0: none
  bool query_key_value_bias = false;
  bool attention_output_bias = false;
  bool mlp_bias = false;
  bool tied_embeddings = false;  // lm_head is the input embedding
  DType dtype = DType::kF32;     // of the checkpoint's tensors, as the config says
  // Keys of the source that its reader does not know: without effect.
  std::vector<std::string> unknown_keys;
  // Keys that the source lacks and whose default counts, for example
  // "head_dim = 128".
  std::vector<std::string> defaulted_keys;

  bool operator==(const ModelConfig&) const = default;
};

// INVALID_ARGUMENT / INVALID_CHECKPOINT for a dimension out of bounds, or heads
// that do not divide.
absl::Status CheckModelConfig(const ModelConfig& config);

}  // namespace planewise

#endif  // PLANEWISE_PLANNER_MODEL_CONFIG_H_
