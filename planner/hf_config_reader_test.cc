#include "planner/hf_config_reader.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/published_configs.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(HfConfigReaderTest, ReadsMiniLm) {
  PW_ASSERT_OK_AND_ASSIGN(const ModelConfig config, ReadHfConfig(kMiniLm.config_json));
  ModelConfig want;
  want.architecture = "BertModel";
  want.family = ModelFamily::kBert;
  want.layers = 6;
  want.hidden_size = 384;
  want.intermediate_size = 1536;
  want.attention_heads = 12;
  want.key_value_heads = 12;
  want.head_dim = 32;
  want.vocab_size = 30522;
  want.positions = 512;
  want.token_types = 2;
  want.query_key_value_bias = want.attention_output_bias = want.mlp_bias = true;
  EXPECT_EQ(config, want);
}

TEST(HfConfigReaderTest, ReadsGroupedQueriesAndTies) {
  PW_ASSERT_OK_AND_ASSIGN(const ModelConfig config, ReadHfConfig(kQwen3.config_json));
  EXPECT_EQ(config.family, ModelFamily::kQwen3);
  EXPECT_EQ(config.head, ModelHead::kCausalLm);
  EXPECT_EQ(config.key_value_heads, 8);
  EXPECT_EQ(config.head_dim, 128);
  EXPECT_TRUE(config.tied_embeddings);
  EXPECT_FALSE(config.query_key_value_bias);
  EXPECT_EQ(config.dtype, DType::kBF16);
}

TEST(HfConfigReaderTest, AbsentKeysTakeTheClassDefaultAndAreListed) {
  PW_ASSERT_OK_AND_ASSIGN(const ModelConfig config,
                          ReadHfConfig(R"({"architectures": ["MistralForCausalLM"]})"));
  EXPECT_EQ(config.hidden_size, 4096);
  EXPECT_EQ(config.intermediate_size, 14336);
  EXPECT_EQ(config.key_value_heads, 8);
  EXPECT_EQ(config.head_dim, 128);
  EXPECT_FALSE(config.tied_embeddings);
  EXPECT_EQ(config.dtype, DType::kF32);
  EXPECT_THAT(config.defaulted_keys,
              ElementsAre("num_hidden_layers = 32", "hidden_size = 4096",
                          "intermediate_size = 14336", "vocab_size = 32000",
                          "num_attention_heads = 32", "num_key_value_heads = 8"));
}

struct HeadsCase {
  const char* name;
  const char* architecture;
  const char* keys;
  int64_t key_value_heads;
  int64_t head_dim;
};

TEST(HfConfigReaderTest, HeadsFollowTheClass) {
  const HeadsCase cases[] = {
      {"null means as many as attention heads", "MistralModel",
       R"("num_key_value_heads": null, "hidden_size": 64, "num_attention_heads": 4)", 4, 16},
      {"llama without the key: as many as attention heads", "LlamaModel",
       R"("hidden_size": 64, "num_attention_heads": 4)", 4, 16},
      {"null head_dim follows from hidden_size", "MistralModel",
       R"("head_dim": null, "hidden_size": 64, "num_attention_heads": 8)", 8, 8},
      {"qwen3 has a head_dim of its own", "Qwen3Model",
       R"("hidden_size": 64, "num_attention_heads": 64)", 32, 128},
      {"an explicit head_dim counts", "MistralModel",
       R"("head_dim": 7, "hidden_size": 65, "num_attention_heads": 8)", 8, 7},
  };
  for (const HeadsCase& test : cases) {
    SCOPED_TRACE(test.name);
    PW_ASSERT_OK_AND_ASSIGN(
        const ModelConfig config,
        ReadHfConfig(absl::StrCat(R"({"architectures": [")", test.architecture, "\"], ",
                                  test.keys, "}")));
    EXPECT_EQ(config.key_value_heads, test.key_value_heads);
    EXPECT_EQ(config.head_dim, test.head_dim);
  }
}

TEST(HfConfigReaderTest, ListsKeysThatNobodyKnows) {
  PW_ASSERT_OK_AND_ASSIGN(
      const ModelConfig config,
      ReadHfConfig(R"({"architectures": ["LlamaModel"], "zeta": 1, "num_experts": 8,
                       "rope_theta": 1e4})"));
  EXPECT_THAT(config.unknown_keys, ElementsAre("num_experts", "zeta"));
  PW_ASSERT_OK_AND_ASSIGN(const ModelConfig known, ReadHfConfig(kLlama3.config_json));
  EXPECT_THAT(known.unknown_keys, IsEmpty());
  EXPECT_THAT(known.defaulted_keys, IsEmpty());
}

TEST(HfConfigReaderTest, BiasesFollowTheFamily) {
  PW_ASSERT_OK_AND_ASSIGN(const ModelConfig llama,
                          ReadHfConfig(R"({"architectures": ["LlamaModel"],
                                           "attention_bias": true, "mlp_bias": true})"));
  EXPECT_TRUE(llama.query_key_value_bias && llama.attention_output_bias && llama.mlp_bias);
  PW_ASSERT_OK_AND_ASSIGN(const ModelConfig qwen2,
                          ReadHfConfig(R"({"architectures": ["Qwen2Model"]})"));
  EXPECT_TRUE(qwen2.query_key_value_bias);
  EXPECT_FALSE(qwen2.attention_output_bias || qwen2.mlp_bias);
  PW_ASSERT_OK_AND_ASSIGN(const ModelConfig mistral,
                          ReadHfConfig(R"({"architectures": ["MistralModel"]})"));
  EXPECT_FALSE(mistral.query_key_value_bias || mistral.attention_output_bias || mistral.mlp_bias);
}

struct BadCase {
  const char* name;
  std::string json;
  Reason reason;
  const char* message;
};

TEST(HfConfigReaderTest, RefusesWhatItDoesNotKnowOrCannotTrust) {
  const std::string llama = R"({"architectures": ["LlamaModel"], )";
  const BadCase cases[] = {
      {"another architecture", R"({"architectures": ["GPT2LMHeadModel"]})",
       Reason::kUnknownArchitecture,
       "\"GPT2LMHeadModel\" is not known; known: BertModel, LlamaModel, LlamaForCausalLM"},
      {"no architecture", R"({"model_type": "bert"})", Reason::kUnknownArchitecture,
       "\"architectures\" is absent"},
      {"two architectures", R"({"architectures": ["BertModel", "LlamaModel"]})",
       Reason::kUnknownArchitecture, "exactly one name"},
      {"a model type that disagrees", R"({"architectures": ["BertModel"], "model_type": "llama"})",
       Reason::kUnknownArchitecture, "model_type \"llama\", expected \"bert\""},
      {"relative positions",
       R"({"architectures": ["BertModel"], "position_embedding_type": "relative_key"})",
       Reason::kUnknownArchitecture, "relative_key"},
      {"cross attention", R"({"architectures": ["BertModel"], "add_cross_attention": true})",
       Reason::kUnknownArchitecture, "add_cross_attention"},
      {"a quantized checkpoint", llama + R"("quantization_config": {"bits": 4}})",
       Reason::kNotSupported, "quantization_config"},
      {"not JSON", "{\"architectures\": ", Reason::kInvalidCheckpoint, "not JSON: error at byte"},
      {"trailing text", "{} {}", Reason::kInvalidCheckpoint, "not JSON"},
      {"not an object", "[1]", Reason::kInvalidCheckpoint, "not a JSON object"},
      {"empty", "", Reason::kInvalidCheckpoint, "not JSON"},
      {"not UTF-8", "{\"\xff\": 1}", Reason::kInvalidCheckpoint, "not JSON"},
      {"a key twice", llama + R"("hidden_size": 64, "hidden_size": 128})",
       Reason::kInvalidCheckpoint, "\"hidden_size\" appears twice"},
      {"a key twice, deep down", llama + R"("x": [{"a": 1, "b": {}, "a": 2}]})",
       Reason::kInvalidCheckpoint, "\"a\" appears twice"},
      {"a number as text", llama + R"("hidden_size": "64"})", Reason::kInvalidCheckpoint,
       "\"hidden_size\" is \"64\"; required a whole number"},
      {"a fraction", llama + R"("hidden_size": 64.5})", Reason::kInvalidCheckpoint, "64.5"},
      {"null where a number is needed", llama + R"("hidden_size": null})",
       Reason::kInvalidCheckpoint, "\"hidden_size\" is null"},
      {"2^64-1", llama + R"("hidden_size": 18446744073709551615})", Reason::kInvalidCheckpoint,
       "18446744073709551615"},
      {"a negative size", llama + R"("hidden_size": -64})", Reason::kInvalidCheckpoint,
       "hidden size is -64"},
      {"no layers", llama + R"("num_hidden_layers": 0})", Reason::kInvalidCheckpoint,
       "number of layers is 0; required 1 to 1024"},
      {"too many layers", llama + R"("num_hidden_layers": 1025})", Reason::kInvalidCheckpoint,
       "number of layers is 1025"},
      // (A table of no rows was listed, as a tensor of no elements.)
      {"no token types", R"({"architectures": ["BertModel"], "type_vocab_size": 0})",
       Reason::kInvalidCheckpoint, "number of token types is 0; required 1 to"},
      {"no positions", R"({"architectures": ["BertModel"], "max_position_embeddings": 0})",
       Reason::kInvalidCheckpoint, "number of positions is 0; required 1 to"},
      {"no heads", llama + R"("num_attention_heads": 0})", Reason::kInvalidCheckpoint,
       "number of attention heads is 0"},
      {"heads that do not divide", llama + R"("hidden_size": 65, "num_attention_heads": 8})",
       Reason::kInvalidCheckpoint, "hidden_size 65 is not a multiple of num_attention_heads 8"},
      {"groups that do not divide", llama + R"("num_attention_heads": 8,
       "num_key_value_heads": 3})", Reason::kInvalidCheckpoint, "not a multiple of 3"},
      {"a head as wide as memory", llama + R"("head_dim": 4194304})", Reason::kInvalidCheckpoint,
       "attention heads times head dimension"},
      {"an integer type", llama + R"("torch_dtype": "int8"})", Reason::kDtypeUnsupported, "int8"},
      {"types that disagree", llama + R"("torch_dtype": "float16", "dtype": "bfloat16"})",
       Reason::kInvalidCheckpoint, "must agree"},
      {"a bias as number", llama + R"("attention_bias": 1})", Reason::kInvalidCheckpoint,
       "\"attention_bias\" is 1; required true or false"},
  };
  for (const BadCase& test : cases) {
    SCOPED_TRACE(test.name);
    EXPECT_THAT(ReadHfConfig(test.json), HasReason(test.reason, HasSubstr(test.message)));
  }
}

TEST(HfConfigReaderTest, CapsDepthAndLength) {
  // The config object itself is one level.
  const std::string deepest = std::string(kConfigDepthMax - 1, '[') +
                              std::string(kConfigDepthMax - 1, ']');
  PW_EXPECT_OK(ReadHfConfig(absl::StrCat(R"({"architectures": ["BertModel"], "x": )", deepest,
                                         "}")));
  EXPECT_THAT(ReadHfConfig(absl::StrCat(R"({"architectures": ["BertModel"], "x": [)", deepest,
                                        "]}")),
              HasReason(Reason::kInvalidCheckpoint, HasSubstr("nested deeper than 32")));
  EXPECT_THAT(ReadHfConfig(std::string(100'000, '[')),
              HasReason(Reason::kInvalidCheckpoint, HasSubstr("nested deeper")));
  EXPECT_THAT(ReadHfConfig(std::string(kConfigBytesMax + 1, ' ')),
              HasReason(Reason::kInvalidCheckpoint, HasSubstr("bytes exceed")));
}

TEST(HfConfigReaderTest, AcceptsBothSpellingsOfADtype) {
  for (const char* keys : {R"("dtype": "float16")", R"("torch_dtype": "torch.float16")",
                           R"("dtype": "float16", "torch_dtype": "float16")"}) {
    PW_ASSERT_OK_AND_ASSIGN(
        const ModelConfig config,
        ReadHfConfig(absl::StrCat(R"({"architectures": ["BertModel"], )", keys, "}")));
    EXPECT_EQ(config.dtype, DType::kF16) << keys;
  }
}

}  // namespace
}  // namespace planewise
