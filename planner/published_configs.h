#ifndef PLANEWISE_PLANNER_PUBLISHED_CONFIGS_H_
#define PLANEWISE_PLANNER_PUBLISHED_CONFIGS_H_
// The config.json of models whose parameter counts are published, for tests and
// benchmarks. Keys that no tensor depends on are mostly left out.
//
// Not here: reading them (hf_config_reader.h).

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace planewise {

struct PublishedModel {
  absl::string_view name;
  absl::string_view config_json;
  int64_t parameters;
  int64_t hosted_parameters;  // of linear layers, with biases
};

inline constexpr PublishedModel kMiniLm = {
    "all-MiniLM-L6-v2",
    R"({
      "_name_or_path": "nreimers/MiniLM-L6-H384-uncased",
      "architectures": ["BertModel"],
      "attention_probs_dropout_prob": 0.1,
      "gradient_checkpointing": false,
      "hidden_act": "gelu",
      "hidden_dropout_prob": 0.1,
      "hidden_size": 384,
      "initializer_range": 0.02,
      "intermediate_size": 1536,
      "layer_norm_eps": 1e-12,
      "max_position_embeddings": 512,
      "model_type": "bert",
      "num_attention_heads": 12,
      "num_hidden_layers": 6,
      "pad_token_id": 0,
      "position_embedding_type": "absolute",
      "transformers_version": "4.8.2",
      "type_vocab_size": 2,
      "use_cache": true,
      "vocab_size": 30522
    })",
    22'713'216,
    10'785'408,
};

inline constexpr PublishedModel kLlama3 = {
    "Meta-Llama-3-8B",
    R"({
      "architectures": ["LlamaForCausalLM"],
      "attention_bias": false,
      "hidden_size": 4096,
      "intermediate_size": 14336,
      "max_position_embeddings": 8192,
      "model_type": "llama",
      "num_attention_heads": 32,
      "num_hidden_layers": 32,
      "num_key_value_heads": 8,
      "rope_scaling": null,
      "rope_theta": 500000.0,
      "tie_word_embeddings": false,
      "torch_dtype": "bfloat16",
      "vocab_size": 128256
    })",
    8'030'261'248,
    6'979'321'856,
};

inline constexpr PublishedModel kMistral7b = {
    "Mistral-7B-v0.1",
    R"({
      "architectures": ["MistralForCausalLM"],
      "hidden_size": 4096,
      "intermediate_size": 14336,
      "model_type": "mistral",
      "num_attention_heads": 32,
      "num_hidden_layers": 32,
      "num_key_value_heads": 8,
      "sliding_window": 4096,
      "tie_word_embeddings": false,
      "torch_dtype": "bfloat16",
      "vocab_size": 32000
    })",
    7'241'732'096,
    6'979'321'856,
};

// Biases on query, key and value; tied lm_head.
inline constexpr PublishedModel kQwen2 = {
    "Qwen2.5-0.5B",
    R"({
      "architectures": ["Qwen2ForCausalLM"],
      "hidden_size": 896,
      "intermediate_size": 4864,
      "max_window_layers": 24,
      "model_type": "qwen2",
      "num_attention_heads": 14,
      "num_hidden_layers": 24,
      "num_key_value_heads": 2,
      "tie_word_embeddings": true,
      "torch_dtype": "bfloat16",
      "use_sliding_window": false,
      "vocab_size": 151936
    })",
    494'032'768,
    357'854'208,
};

// Heads wider than hidden_size / heads; norms of query and key; tied lm_head.
inline constexpr PublishedModel kQwen3 = {
    "Qwen3-0.6B",
    R"({
      "architectures": ["Qwen3ForCausalLM"],
      "attention_bias": false,
      "head_dim": 128,
      "hidden_size": 1024,
      "intermediate_size": 3072,
      "model_type": "qwen3",
      "num_attention_heads": 16,
      "num_hidden_layers": 28,
      "num_key_value_heads": 8,
      "tie_word_embeddings": true,
      "torch_dtype": "bfloat16",
      "vocab_size": 151936
    })",
    596'049'920,
    440'401'920,
};

inline constexpr PublishedModel kPublishedModels[] = {kMiniLm, kLlama3, kMistral7b, kQwen2,
                                                      kQwen3};

}  // namespace planewise

#endif  // PLANEWISE_PLANNER_PUBLISHED_CONFIGS_H_
