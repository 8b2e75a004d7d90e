#ifndef PLANEWISE_TESTS_TESTING_HF_MODEL_H_
#define PLANEWISE_TESTS_TESTING_HF_MODEL_H_
// Hugging Face directories made by code: small, whole, and with random weights.
// A test that wants a broken one changes the tensors before it writes them.
//
// Not here: which tensors an architecture has (planner/tensor_inventory.h).

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/base/file_system.h"
#include "core/checkpoint/safetensors_writer.h"
#include "core/numeric/dtype.h"

namespace planewise {

// Seven hosted linears with biases, 64 to 128 features each.
inline constexpr absl::string_view kTinyBert = R"({
  "architectures": ["BertModel"], "model_type": "bert", "hidden_size": 64,
  "intermediate_size": 128, "num_hidden_layers": 1, "num_attention_heads": 2,
  "vocab_size": 40, "max_position_embeddings": 16, "type_vocab_size": 2, "hidden_act": "gelu"
})";

struct ModelTensor {
  SafetensorsTensor tensor;
  std::vector<std::byte> bytes;
};

// Every tensor of the architecture with values in [-1/8, 1/8). `dtype` is F32 or
// BF16. Aborts for a config that is not one.
std::vector<ModelTensor> RandomTensors(absl::string_view config_json, DType dtype, uint64_t seed);

// The tensor of that name; aborts if there is none.
ModelTensor& FindTensor(std::vector<ModelTensor>& tensors, absl::string_view name);

// Makes `directory` with config.json and model.safetensors.
absl::Status WriteHfModel(FileSystem& file_system, const std::string& directory,
                          absl::string_view config_json, const std::vector<ModelTensor>& tensors);

}  // namespace planewise

#endif  // PLANEWISE_TESTS_TESTING_HF_MODEL_H_
