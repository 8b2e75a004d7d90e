#include "planner/tensor_inventory.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace planewise {
namespace {

constexpr absl::string_view kStays = " stays with the trainer";

// Appends the tensors of one module after another.
class InventoryBuilder {
 public:
  explicit InventoryBuilder(TensorInventory& inventory) : inventory_(inventory) {}

  void HostedLinear(const std::string& layer, int64_t out, int64_t in, bool bias) {
    Add(layer, ".weight", {out, in}, TensorRole::kLinearWeight, "");
    if (bias) Add(layer, ".bias", {out}, TensorRole::kLinearBias, "");
  }

  void RmsNorm(const std::string& layer, int64_t features) {
    Add(layer, ".weight", {features}, TensorRole::kNorm, "norm:");
  }

  void LayerNorm(const std::string& layer, int64_t features) {
    RmsNorm(layer, features);
    Add(layer, ".bias", {features}, TensorRole::kNorm, "norm:");
  }

  void Embedding(const std::string& layer, int64_t rows, int64_t features, TensorRole role) {
    Add(layer, ".weight", {rows, features}, role,
        role == TensorRole::kPosition ? "position embedding:" : "embedding:");
  }

  // lm_head, which is `tied_to` unless that is empty.
  void Head(const std::string& layer, int64_t out, int64_t in, const std::string& tied_to) {
    const std::string why = tied_to.empty() ? "lm_head:" : absl::StrCat("tied with ", tied_to, ":");
    Add(layer, ".weight", {out, in}, TensorRole::kHead, why);
    inventory_.tensors.back().tied_to = tied_to;
  }

  void SetDType(DType dtype) {
    for (InventoryTensor& tensor : inventory_.tensors) tensor.dtype = dtype;
  }

 private:
  // Hosted if `local` is empty; else it says what the tensor is.
  void Add(const std::string& layer, absl::string_view suffix, std::vector<int64_t> shape,
           TensorRole role, absl::string_view local) {
    InventoryTensor tensor;
    tensor.name = absl::StrCat(layer, suffix);
    tensor.shape = std::move(shape);
    tensor.role = role;
    tensor.layer = layer;
    tensor.hosted = local.empty();
    if (!tensor.hosted) tensor.why_local = absl::StrCat(local, kStays);
    inventory_.tensors.push_back(std::move(tensor));
  }

  TensorInventory& inventory_;
};

void AddBert(const ModelConfig& config, InventoryBuilder& builder) {
  const int64_t hidden = config.hidden_size;
  builder.Embedding("embeddings.word_embeddings", config.vocab_size, hidden,
                    TensorRole::kEmbedding);
  builder.Embedding("embeddings.position_embeddings", config.positions, hidden,
                    TensorRole::kPosition);
  builder.Embedding("embeddings.token_type_embeddings", config.token_types, hidden,
                    TensorRole::kEmbedding);
  builder.LayerNorm("embeddings.LayerNorm", hidden);
  for (int64_t i = 0; i < config.layers; ++i) {
    const std::string layer = absl::StrCat("encoder.layer.", i);
    for (const char* projection : {"query", "key", "value"}) {
      builder.HostedLinear(absl::StrCat(layer, ".attention.self.", projection), hidden, hidden,
                           config.query_key_value_bias);
    }
    builder.HostedLinear(layer + ".attention.output.dense", hidden, hidden,
                         config.attention_output_bias);
    builder.LayerNorm(layer + ".attention.output.LayerNorm", hidden);
    builder.HostedLinear(layer + ".intermediate.dense", config.intermediate_size, hidden,
                         config.mlp_bias);
    builder.HostedLinear(layer + ".output.dense", hidden, config.intermediate_size,
                         config.mlp_bias);
    builder.LayerNorm(layer + ".output.LayerNorm", hidden);
  }
  builder.HostedLinear("pooler.dense", hidden, hidden, /*bias=*/true);
}

// Llama, Mistral, Qwen2 and Qwen3 differ in biases and in Qwen3's norms of
// query and key.
void AddDecoder(const ModelConfig& config, const std::string& prefix, InventoryBuilder& builder) {
  const int64_t hidden = config.hidden_size;
  const int64_t query = config.attention_heads * config.head_dim;
  const int64_t key_value = config.key_value_heads * config.head_dim;
  const int64_t intermediate = config.intermediate_size;
  const std::string embedding = prefix + "embed_tokens";
  builder.Embedding(embedding, config.vocab_size, hidden, TensorRole::kEmbedding);
  for (int64_t i = 0; i < config.layers; ++i) {
    const std::string layer = absl::StrCat(prefix, "layers.", i);
    const std::string attention = layer + ".self_attn";
    builder.HostedLinear(attention + ".q_proj", query, hidden, config.query_key_value_bias);
    builder.HostedLinear(attention + ".k_proj", key_value, hidden, config.query_key_value_bias);
    builder.HostedLinear(attention + ".v_proj", key_value, hidden, config.query_key_value_bias);
    builder.HostedLinear(attention + ".o_proj", hidden, query, config.attention_output_bias);
    if (config.family == ModelFamily::kQwen3) {
      builder.RmsNorm(attention + ".q_norm", config.head_dim);
      builder.RmsNorm(attention + ".k_norm", config.head_dim);
    }
    builder.HostedLinear(layer + ".mlp.gate_proj", intermediate, hidden, config.mlp_bias);
    builder.HostedLinear(layer + ".mlp.up_proj", intermediate, hidden, config.mlp_bias);
    builder.HostedLinear(layer + ".mlp.down_proj", hidden, intermediate, config.mlp_bias);
    builder.RmsNorm(layer + ".input_layernorm", hidden);
    builder.RmsNorm(layer + ".post_attention_layernorm", hidden);
  }
  builder.RmsNorm(prefix + "norm", hidden);
  if (config.head == ModelHead::kCausalLm) {
    builder.Head("lm_head", config.vocab_size, hidden,
                 config.tied_embeddings ? embedding + ".weight" : "");
  }
}

}  // namespace

absl::string_view Name(TensorRole role) {
  switch (role) {
    case TensorRole::kLinearWeight: return "linear_weight";
    case TensorRole::kLinearBias: return "linear_bias";
    case TensorRole::kNorm: return "norm";
    case TensorRole::kEmbedding: return "embedding";
    case TensorRole::kHead: return "head";
    case TensorRole::kPosition: return "position";
  }
  return "invalid";
}

int64_t InventoryTensor::elements() const {
  int64_t product = 1;
  for (const int64_t dimension : shape) product *= dimension;
  return product;
}

int64_t InventoryTensor::source_bytes() const { return elements() * FactsOf(dtype).bits / 8; }

const InventoryTensor* TensorInventory::Find(absl::string_view name) const {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [name](const InventoryTensor& t) { return t.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

int64_t TensorInventory::parameters() const {
  int64_t sum = 0;
  for (const InventoryTensor& tensor : tensors) {
    if (tensor.tied_to.empty()) sum += tensor.elements();
  }
  return sum;
}

int64_t TensorInventory::source_bytes() const {
  int64_t sum = 0;
  for (const InventoryTensor& tensor : tensors) {
    if (tensor.tied_to.empty()) sum += tensor.source_bytes();
  }
  return sum;
}

absl::StatusOr<TensorInventory> BuildInventory(const ModelConfig& config) {
  PW_RETURN_IF_ERROR(CheckModelConfig(config));
  TensorInventory inventory;
  inventory.architecture = config.architecture;
  InventoryBuilder builder(inventory);
  if (config.family == ModelFamily::kBert) {
    inventory.base_prefix = "bert.";
    AddBert(config, builder);
  } else {
    inventory.base_prefix = "model.";
    AddDecoder(config, config.head == ModelHead::kNone ? "" : inventory.base_prefix, builder);
  }
  builder.SetDType(config.dtype);
  return inventory;
}

}  // namespace planewise
