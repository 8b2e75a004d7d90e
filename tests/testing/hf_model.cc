#include "tests/testing/hf_model.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "planner/hf_config_reader.h"
#include "planner/model_config.h"
#include "planner/tensor_inventory.h"

namespace planewise {
namespace {

template <typename T>
T ValueOrDie(absl::StatusOr<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "%s\n", result.status().ToString().c_str());
    std::abort();
  }
  return *std::move(result);
}

std::vector<std::byte> RandomValues(DType dtype, int64_t elements, std::mt19937_64& random) {
  const size_t element_bytes = FactsOf(dtype).bits / 8;
  std::vector<std::byte> bytes(static_cast<size_t>(elements) * element_bytes);
  for (int64_t i = 0; i < elements; ++i) {
    // 24 random bits are exact in a float.
    const float value = static_cast<float>(random() >> 40) / float{1 << 24} / 4 - 0.125f;
    char encoded[sizeof(float)];
    std::memcpy(encoded, &value, sizeof(value));
    // A BF16 is the upper half of a float.
    std::memcpy(bytes.data() + i * element_bytes, encoded + sizeof(float) - element_bytes,
                element_bytes);
  }
  return bytes;
}

}  // namespace

std::vector<ModelTensor> RandomTensors(absl::string_view config_json, DType dtype, uint64_t seed) {
  const TensorInventory inventory =
      ValueOrDie(BuildInventory(ValueOrDie(ReadHfConfig(config_json))));
  std::mt19937_64 random(seed);
  std::vector<ModelTensor> tensors;
  for (const InventoryTensor& wanted : inventory.tensors) {
    if (!wanted.tied_to.empty()) continue;
    tensors.push_back({{wanted.name, dtype, wanted.shape},
                       RandomValues(dtype, wanted.elements(), random)});
  }
  return tensors;
}

ModelTensor& FindTensor(std::vector<ModelTensor>& tensors, absl::string_view name) {
  for (ModelTensor& tensor : tensors) {
    if (tensor.tensor.name == name) return tensor;
  }
  std::fprintf(stderr, "no tensor %s\n", std::string(name).c_str());
  std::abort();
}

absl::Status WriteHfModel(FileSystem& file_system, const std::string& directory,
                          absl::string_view config_json, const std::vector<ModelTensor>& tensors) {
  PW_RETURN_IF_ERROR(file_system.MakeDirectory(directory));
  PW_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> config,
                      file_system.Create(JoinPath(directory, "config.json")));
  PW_RETURN_IF_ERROR(config->Append(
      {reinterpret_cast<const std::byte*>(config_json.data()), config_json.size()}));
  PW_RETURN_IF_ERROR(config->Close());
  std::vector<SafetensorsContent> contents;
  for (const ModelTensor& tensor : tensors) contents.push_back({tensor.tensor, tensor.bytes});
  return WriteSafetensors(file_system, JoinPath(directory, "model.safetensors"), contents);
}

}  // namespace planewise
