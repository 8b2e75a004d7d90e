#include "planner/hf_config_reader.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "core/base/strict_json.h"

namespace planewise {
namespace {

using Json = nlohmann::json;

struct ArchitectureFacts {
  absl::string_view name;  // as in "architectures"
  ModelFamily family;
  ModelHead head;
};

constexpr ArchitectureFacts kArchitectures[] = {
    {"BertModel", ModelFamily::kBert, ModelHead::kNone},
    {"LlamaModel", ModelFamily::kLlama, ModelHead::kNone},
    {"LlamaForCausalLM", ModelFamily::kLlama, ModelHead::kCausalLm},
    {"MistralModel", ModelFamily::kMistral, ModelHead::kNone},
    {"MistralForCausalLM", ModelFamily::kMistral, ModelHead::kCausalLm},
    {"Qwen2Model", ModelFamily::kQwen2, ModelHead::kNone},
    {"Qwen2ForCausalLM", ModelFamily::kQwen2, ModelHead::kCausalLm},
    {"Qwen3Model", ModelFamily::kQwen3, ModelHead::kNone},
    {"Qwen3ForCausalLM", ModelFamily::kQwen3, ModelHead::kCausalLm},
};

// Defaults of the family's configuration class in transformers. 0: there is no
// such key, or its default follows from other keys.
struct FamilyDefaults {
  ModelFamily family;
  int64_t vocab_size;
  int64_t hidden_size;
  int64_t intermediate_size;
  int64_t layers;
  int64_t attention_heads;
  int64_t key_value_heads;  // 0: as many as attention_heads
  int64_t head_dim;         // 0: hidden_size / attention_heads
};

constexpr FamilyDefaults kDefaults[] = {
    {ModelFamily::kBert, 30522, 768, 3072, 12, 12, 0, 0},
    {ModelFamily::kLlama, 32000, 4096, 11008, 32, 32, 0, 0},
    {ModelFamily::kMistral, 32000, 4096, 14336, 32, 32, 8, 0},
    {ModelFamily::kQwen2, 151936, 4096, 22016, 32, 32, 32, 0},
    {ModelFamily::kQwen3, 151936, 4096, 22016, 32, 32, 32, 128},
};
constexpr int64_t kBertPositions = 512;
constexpr int64_t kBertTokenTypes = 2;

// Keys that change no tensor, whatever their value.
constexpr absl::string_view kKeysWithoutTensors[] = {
    "_attn_implementation_autoset",
    "_name_or_path",
    "attention_dropout",
    "attention_probs_dropout_prob",
    "bos_token_id",
    "chunk_size_feed_forward",
    "classifier_dropout",
    "eos_token_id",
    "gradient_checkpointing",
    "hidden_act",
    "hidden_dropout_prob",
    "id2label",
    "initializer_range",
    "is_decoder",
    "label2id",
    "layer_norm_eps",
    "layer_types",
    "max_position_embeddings",
    "max_window_layers",
    "output_attentions",
    "output_hidden_states",
    "pad_token_id",
    "pretraining_tp",
    "problem_type",
    "rms_norm_eps",
    "rope_parameters",
    "rope_scaling",
    "rope_theta",
    "sliding_window",
    "transformers_version",
    "use_cache",
    "use_sliding_window",
};

// Reads keys of config.json's object. The first thing wrong is kept and every
// later answer is then meaningless, so that the reading itself stays a list.
class ConfigKeys {
 public:
  explicit ConfigKeys(const Json& object) : object_(object) {}

  // nullptr if the key is absent. The key counts as known.
  const Json* Find(const char* key) {
    known_.insert(key);
    const auto found = object_.find(key);
    return found == object_.end() ? nullptr : &*found;
  }

  int64_t Integer(const char* key, int64_t default_value) {
    const Json* value = Find(key);
    if (value == nullptr) {
      defaulted_.push_back(absl::StrCat(key, " = ", default_value));
      return default_value;
    }
    return IntegerOf(key, *value);
  }

  // nullopt if the key is absent or null.
  std::optional<int64_t> OptionalInteger(const char* key) {
    const Json* value = Find(key);
    if (value == nullptr || value->is_null()) return std::nullopt;
    return IntegerOf(key, *value);
  }

  bool Boolean(const char* key, bool default_value) {
    const Json* value = Find(key);
    if (value == nullptr) return default_value;
    if (!value->is_boolean()) WrongType(key, "true or false", *value);
    return value->is_boolean() && value->get<bool>();
  }

  // nullopt if the key is absent or null.
  std::optional<std::string> String(const char* key) {
    const Json* value = Find(key);
    if (value == nullptr || value->is_null()) return std::nullopt;
    if (!value->is_string()) {
      WrongType(key, "a string", *value);
      return std::nullopt;
    }
    return value->get<std::string>();
  }

  void Fail(absl::Status status) {
    if (status_.ok()) status_ = std::move(status);
  }

  const absl::Status& status() const { return status_; }
  std::vector<std::string> TakeDefaulted() { return std::move(defaulted_); }

  std::vector<std::string> UnknownKeys() const {
    std::vector<std::string> unknown;
    for (const auto& item : object_.items()) {
      if (known_.contains(item.key()) || absl::c_linear_search(kKeysWithoutTensors, item.key())) {
        continue;
      }
      unknown.push_back(item.key());
    }
    return unknown;
  }

 private:
  int64_t IntegerOf(const char* key, const Json& value) {
    // An unsigned number that is too large for int64_t is as wrong as any
    // beyond kModelDimensionMax, and would turn negative here.
    if (!value.is_number_integer() ||
        (value.is_number_unsigned() && value.get<uint64_t>() > uint64_t{kModelDimensionMax})) {
      WrongType(key, absl::StrCat("a whole number up to ", kModelDimensionMax), value);
      return 0;
    }
    return value.get<int64_t>();
  }

  void WrongType(const char* key, absl::string_view required, const Json& value) {
    // A key may hold megabytes: show the start.
    const std::string text = value.dump().substr(0, 80);
    Fail(Error(Reason::kInvalidCheckpoint,
               absl::StrCat("config.json: \"", key, "\" is ", text, "; required ", required)));
  }

  const Json& object_;
  absl::flat_hash_set<std::string> known_;
  std::vector<std::string> defaulted_;
  absl::Status status_;
};

std::string KnownArchitectures() {
  return absl::StrJoin(kArchitectures, ", ", [](std::string* out, const ArchitectureFacts& facts) {
    absl::StrAppend(out, facts.name);
  });
}

absl::Status UnknownArchitecture(absl::string_view observed) {
  return Error(Reason::kUnknownArchitecture,
               absl::StrCat("config.json: ", observed, "; known: ", KnownArchitectures()));
}

absl::StatusOr<ArchitectureFacts> ReadArchitecture(ConfigKeys& keys) {
  const Json* list = keys.Find("architectures");
  if (list == nullptr || list->is_null()) {
    return UnknownArchitecture(
        "\"architectures\" is absent; state one, for example [\"BertModel\"]");
  }
  if (!list->is_array() || list->size() != 1 || !list->front().is_string()) {
    return UnknownArchitecture("\"architectures\" is not a list of exactly one name");
  }
  const std::string name = list->front().get<std::string>();
  for (const ArchitectureFacts& facts : kArchitectures) {
    if (facts.name != name) continue;
    const std::optional<std::string> type = keys.String("model_type");
    if (type.has_value() && *type != Name(facts.family)) {
      return UnknownArchitecture(absl::StrCat("architecture \"", name, "\" with model_type \"",
                                              *type, "\", expected \"", Name(facts.family), "\""));
    }
    return facts;
  }
  return UnknownArchitecture(absl::StrCat("architecture \"", name, "\" is not known"));
}

// Values that would add or change tensors in a way that the inventory does not
// describe.
absl::Status CheckBertVariant(ConfigKeys& keys) {
  const std::optional<std::string> positions = keys.String("position_embedding_type");
  if (positions.has_value() && *positions != "absolute") {
    return UnknownArchitecture(absl::StrCat("position_embedding_type \"", *positions,
                                            "\" is not known, only \"absolute\""));
  }
  if (keys.Boolean("add_cross_attention", false)) {
    return UnknownArchitecture("add_cross_attention is not known");
  }
  return absl::OkStatus();
}

DType ReadDType(ConfigKeys& keys) {
  const std::optional<std::string> torch_dtype = keys.String("torch_dtype");
  const std::optional<std::string> dtype = keys.String("dtype");
  if (torch_dtype.has_value() && dtype.has_value() && *torch_dtype != *dtype) {
    keys.Fail(Error(Reason::kInvalidCheckpoint,
                    absl::StrCat("config.json: \"dtype\" is \"", *dtype,
                                 "\" and \"torch_dtype\" is \"", *torch_dtype,
                                 "\"; they must agree")));
  }
  // Without either, transformers makes the parameters in torch's default type.
  const std::string text = dtype.value_or(torch_dtype.value_or("float32"));
  const absl::string_view name = absl::StripPrefix(text, "torch.");
  if (name == "float32") return DType::kF32;
  if (name == "float16") return DType::kF16;
  if (name == "bfloat16") return DType::kBF16;
  keys.Fail(Error(Reason::kDtypeUnsupported,
                  absl::StrCat("config.json: dtype \"", text,
                               "\"; required float32, float16 or bfloat16")));
  return DType::kF32;
}

const FamilyDefaults& DefaultsOf(ModelFamily family) {
  for (const FamilyDefaults& defaults : kDefaults) {
    if (defaults.family == family) return defaults;
  }
  return kDefaults[0];  // not reached: every family has a row
}

void ReadHeads(ConfigKeys& keys, const FamilyDefaults& defaults, ModelConfig& config) {
  config.attention_heads = keys.Integer("num_attention_heads", defaults.attention_heads);
  config.key_value_heads = config.attention_heads;
  // Null means "as many as attention heads" in every family; absent means the
  // class default.
  if (config.family != ModelFamily::kBert) {
    const std::optional<int64_t> value = keys.OptionalInteger("num_key_value_heads");
    if (value.has_value()) {
      config.key_value_heads = *value;
    } else if (keys.Find("num_key_value_heads") == nullptr && defaults.key_value_heads > 0) {
      config.key_value_heads = keys.Integer("num_key_value_heads", defaults.key_value_heads);
    }
    const std::optional<int64_t> head_dim = keys.OptionalInteger("head_dim");
    if (head_dim.has_value()) {
      config.head_dim = *head_dim;
      return;
    }
    if (defaults.head_dim > 0) {
      config.head_dim = keys.Integer("head_dim", defaults.head_dim);
      return;
    }
  }
  if (config.attention_heads <= 0) return;  // CheckModelConfig refuses it
  if (config.hidden_size % config.attention_heads != 0) {
    keys.Fail(Error(Reason::kInvalidCheckpoint,
                    absl::StrCat("config.json: hidden_size ", config.hidden_size,
                                 " is not a multiple of num_attention_heads ",
                                 config.attention_heads, " and head_dim is not given")));
  }
  config.head_dim = config.hidden_size / config.attention_heads;
}

void ReadBiases(ConfigKeys& keys, ModelConfig& config) {
  switch (config.family) {
    case ModelFamily::kBert:
      config.query_key_value_bias = config.attention_output_bias = config.mlp_bias = true;
      return;
    case ModelFamily::kLlama:
      config.mlp_bias = keys.Boolean("mlp_bias", false);
      [[fallthrough]];
    case ModelFamily::kQwen3:
      config.query_key_value_bias = keys.Boolean("attention_bias", false);
      config.attention_output_bias = config.query_key_value_bias;
      return;
    case ModelFamily::kQwen2:
      config.query_key_value_bias = true;
      return;
    case ModelFamily::kMistral:
      return;
  }
}

}  // namespace

absl::StatusOr<ModelConfig> ReadHfConfig(absl::string_view json) {
  if (static_cast<int64_t>(json.size()) > kConfigBytesMax) {
    return Error(Reason::kInvalidCheckpoint,
                 absl::StrCat("config.json: ", json.size(), " bytes exceed ", kConfigBytesMax));
  }
  PW_ASSIGN_OR_RETURN(const Json object, ParseStrictJson(json, kConfigDepthMax, "config.json"));
  if (!object.is_object()) {
    return Error(Reason::kInvalidCheckpoint, "config.json: not a JSON object");
  }
  ConfigKeys keys(object);
  PW_ASSIGN_OR_RETURN(const ArchitectureFacts architecture, ReadArchitecture(keys));
  const Json* quantization = keys.Find("quantization_config");
  if (quantization != nullptr && !quantization->is_null()) {
    return Error(Reason::kNotSupported,
                 "config.json: \"quantization_config\" says that the checkpoint is quantized; "
                 "required one in float32, float16 or bfloat16");
  }
  if (architecture.family == ModelFamily::kBert) PW_RETURN_IF_ERROR(CheckBertVariant(keys));

  const FamilyDefaults& defaults = DefaultsOf(architecture.family);
  ModelConfig config;
  config.architecture = std::string(architecture.name);
  config.family = architecture.family;
  config.head = architecture.head;
  config.layers = keys.Integer("num_hidden_layers", defaults.layers);
  config.hidden_size = keys.Integer("hidden_size", defaults.hidden_size);
  config.intermediate_size = keys.Integer("intermediate_size", defaults.intermediate_size);
  config.vocab_size = keys.Integer("vocab_size", defaults.vocab_size);
  ReadHeads(keys, defaults, config);
  ReadBiases(keys, config);
  if (config.family == ModelFamily::kBert) {
    config.positions = keys.Integer("max_position_embeddings", kBertPositions);
    config.token_types = keys.Integer("type_vocab_size", kBertTokenTypes);
  }
  // Ties lm_head, so it has no effect without one.
  config.tied_embeddings = keys.Boolean("tie_word_embeddings", false) &&
                           config.head == ModelHead::kCausalLm;
  config.dtype = ReadDType(keys);
  PW_RETURN_IF_ERROR(keys.status());
  PW_RETURN_IF_ERROR(Annotate(CheckModelConfig(config), "config.json"));
  config.unknown_keys = keys.UnknownKeys();
  config.defaulted_keys = keys.TakeDefaulted();
  return config;
}

}  // namespace planewise
