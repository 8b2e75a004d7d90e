// Hostile bytes as config.json. Invariants, for any bytes:
//  1. A refusal has one of the reasons that ReadHfConfig lists and names the file
//     or the architecture.
//  2. What is accepted is within the bounds of CheckModelConfig, and no dimension is 0.
//  3. Its inventory can be listed: every tensor once, with elements and bytes that
//     do not overflow, and the hosted ones in layers.
//  4. Reading it again gives the same.

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "core/base/error.h"
#include "planner/hf_config_reader.h"
#include "planner/model_config.h"
#include "planner/tensor_inventory.h"
#include "tests/testing/fuzz_check.h"

namespace planewise {
namespace {

// A model of more layers has only more of the same.
constexpr int64_t kListedLayersMax = 8;

void CheckRefusal(const absl::Status& status) {
  const std::optional<Reason> reason = ReasonOf(status);
  FuzzCheck(reason == Reason::kUnknownArchitecture || reason == Reason::kInvalidCheckpoint ||
                reason == Reason::kDtypeUnsupported || reason == Reason::kNotSupported,
            "1: a refusal has a reason that is listed");
  FuzzCheck(absl::StrContains(status.message(), "config.json") ||
                absl::StrContains(status.message(), "Model") ||
                absl::StrContains(status.message(), "ForCausalLM"),
            "1: a refusal names the file or the architecture");
}

void CheckInventory(const ModelConfig& config) {
  ModelConfig listed = config;
  if (listed.layers > kListedLayersMax) listed.layers = kListedLayersMax;
  const absl::StatusOr<TensorInventory> inventory = BuildInventory(listed);
  FuzzCheck(inventory.ok(), "3: the inventory of what was accepted can be listed");
  absl::flat_hash_set<absl::string_view> names;
  int64_t bytes = 0;
  for (const InventoryTensor& tensor : inventory->tensors) {
    FuzzCheck(names.insert(tensor.name).second, "3: every tensor once");
    FuzzCheck(tensor.elements() > 0, "3: no tensor is empty");
    FuzzCheck(tensor.hosted == tensor.why_local.empty(),
              "3: hosted, or local for a reason");
    FuzzCheck(!tensor.hosted || !tensor.layer.empty(), "3: what is hosted is in a layer");
    if (tensor.tied_to.empty()) {
      FuzzCheck(!__builtin_add_overflow(bytes, tensor.source_bytes(), &bytes),
                "3: bytes do not overflow");
    }
  }
  FuzzCheck(bytes == inventory->source_bytes(), "3: the bytes are those of the tensors");
}

void CheckConfig(absl::string_view text) {
  const absl::StatusOr<ModelConfig> config = ReadHfConfig(text);
  if (!config.ok()) return CheckRefusal(config.status());
  FuzzCheck(CheckModelConfig(*config).ok(), "2: what is accepted is within bounds");
  for (const int64_t size : {config->layers, config->hidden_size, config->intermediate_size,
                             config->attention_heads, config->key_value_heads, config->head_dim,
                             config->vocab_size}) {
    FuzzCheck(size > 0, "2: no dimension is 0");
  }
  CheckInventory(*config);
  const absl::StatusOr<ModelConfig> again = ReadHfConfig(text);
  FuzzCheck(again.ok() && *again == *config, "4: the same text, the same config");
}

}  // namespace
}  // namespace planewise

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  planewise::CheckConfig({reinterpret_cast<const char*>(data), size});
  return 0;
}
