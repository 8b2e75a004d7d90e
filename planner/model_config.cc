#include "planner/model_config.h"

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"

namespace planewise {
namespace {

absl::Status CheckRange(const ModelConfig& config, absl::string_view what, int64_t value,
                        int64_t min, int64_t max) {
  if (value >= min && value <= max) return absl::OkStatus();
  return Error(Reason::kInvalidCheckpoint, absl::StrCat(config.architecture, ": ", what, " is ",
                                                        value, "; required ", min, " to ", max));
}

}  // namespace

absl::string_view Name(ModelFamily family) {
  switch (family) {
    case ModelFamily::kBert: return "bert";
    case ModelFamily::kLlama: return "llama";
    case ModelFamily::kMistral: return "mistral";
    case ModelFamily::kQwen2: return "qwen2";
    case ModelFamily::kQwen3: return "qwen3";
  }
  return "invalid";
}

absl::Status CheckModelConfig(const ModelConfig& config) {
  const auto check = [&config](absl::string_view what, int64_t value, int64_t min) {
    return CheckRange(config, what, value, min, kModelDimensionMax);
  };
  PW_RETURN_IF_ERROR(CheckRange(config, "number of layers", config.layers, 1, kModelLayersMax));
  PW_RETURN_IF_ERROR(check("hidden size", config.hidden_size, 1));
  PW_RETURN_IF_ERROR(check("intermediate size", config.intermediate_size, 1));
  PW_RETURN_IF_ERROR(check("vocabulary size", config.vocab_size, 1));
  // A BERT looks every token up in both tables.
  const int64_t table_min = config.family == ModelFamily::kBert ? 1 : 0;
  PW_RETURN_IF_ERROR(check("number of positions", config.positions, table_min));
  PW_RETURN_IF_ERROR(check("number of token types", config.token_types, table_min));
  PW_RETURN_IF_ERROR(check("number of attention heads", config.attention_heads, 1));
  PW_RETURN_IF_ERROR(check("number of key-value heads", config.key_value_heads, 1));
  PW_RETURN_IF_ERROR(check("head dimension", config.head_dim, 1));
  PW_RETURN_IF_ERROR(check("attention heads times head dimension",
                           config.attention_heads * config.head_dim, 1));
  if (config.attention_heads % config.key_value_heads != 0) {
    return Error(Reason::kInvalidCheckpoint,
                 absl::StrCat(config.architecture, ": ", config.attention_heads,
                              " attention heads are not a multiple of ", config.key_value_heads,
                              " key-value heads"));
  }
  return absl::OkStatus();
}

}  // namespace planewise
