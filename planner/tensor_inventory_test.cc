#include "planner/tensor_inventory.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/hf_config_reader.h"
#include "planner/published_configs.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

using testing::ElementsAre;

TensorInventory InventoryOf(const PublishedModel& model) {
  return *BuildInventory(*ReadHfConfig(model.config_json));
}

TEST(TensorInventoryTest, CountsThePublishedParameters) {
  for (const PublishedModel& model : kPublishedModels) {
    SCOPED_TRACE(model.name);
    const TensorInventory inventory = InventoryOf(model);
    EXPECT_EQ(inventory.parameters(), model.parameters);
    int64_t hosted = 0;
    for (const InventoryTensor& tensor : inventory.tensors) {
      if (tensor.hosted) hosted += tensor.elements();
    }
    EXPECT_EQ(hosted, model.hosted_parameters);
  }
}

TEST(TensorInventoryTest, MiniLmIsNinetyMegabytesInF32) {
  EXPECT_EQ(InventoryOf(kMiniLm).source_bytes(), 90'852'864);
}

TEST(TensorInventoryTest, NamesMiniLmAsItsModuleTreeDoes) {
  const TensorInventory inventory = InventoryOf(kMiniLm);
  EXPECT_EQ(inventory.tensors.size(), 5u + 6 * 16 + 2);
  const InventoryTensor* weight =
      inventory.Find("encoder.layer.5.intermediate.dense.weight");
  ASSERT_NE(weight, nullptr);
  EXPECT_THAT(weight->shape, ElementsAre(1536, 384));
  EXPECT_EQ(weight->role, TensorRole::kLinearWeight);
  EXPECT_EQ(weight->layer, "encoder.layer.5.intermediate.dense");
  EXPECT_TRUE(weight->hosted);
  EXPECT_EQ(weight->why_local, "");
  const InventoryTensor* bias = inventory.Find("encoder.layer.5.intermediate.dense.bias");
  ASSERT_NE(bias, nullptr);
  EXPECT_THAT(bias->shape, ElementsAre(1536));
  EXPECT_EQ(bias, weight + 1);
  EXPECT_NE(inventory.Find("pooler.dense.weight"), nullptr);
  EXPECT_EQ(inventory.Find("encoder.layer.6.intermediate.dense.weight"), nullptr);
}

TEST(TensorInventoryTest, SaysWhyATensorStaysLocal) {
  struct Case {
    const PublishedModel& model;
    const char* tensor;
    TensorRole role;
    const char* why;
  };
  const Case cases[] = {
      {kMiniLm, "embeddings.word_embeddings.weight", TensorRole::kEmbedding,
       "embedding: stays with the trainer"},
      {kMiniLm, "embeddings.position_embeddings.weight", TensorRole::kPosition,
       "position embedding: stays with the trainer"},
      {kMiniLm, "encoder.layer.0.output.LayerNorm.bias", TensorRole::kNorm,
       "norm: stays with the trainer"},
      {kLlama3, "lm_head.weight", TensorRole::kHead, "lm_head: stays with the trainer"},
      {kQwen2, "lm_head.weight", TensorRole::kHead,
       "tied with model.embed_tokens.weight: stays with the trainer"},
      {kQwen3, "model.layers.27.self_attn.q_norm.weight", TensorRole::kNorm,
       "norm: stays with the trainer"},
  };
  for (const Case& test : cases) {
    SCOPED_TRACE(test.tensor);
    const TensorInventory inventory = InventoryOf(test.model);
    const InventoryTensor* tensor = inventory.Find(test.tensor);
    ASSERT_NE(tensor, nullptr);
    EXPECT_EQ(tensor->role, test.role);
    EXPECT_FALSE(tensor->hosted);
    EXPECT_EQ(tensor->why_local, test.why);
  }
  EXPECT_EQ(InventoryOf(kQwen2).Find("lm_head.weight")->tied_to, "model.embed_tokens.weight");
}

TEST(TensorInventoryTest, ShapesFollowGroupedQueriesAndHeadWidth) {
  const TensorInventory inventory = InventoryOf(kQwen3);
  EXPECT_THAT(inventory.Find("model.layers.0.self_attn.q_proj.weight")->shape,
              ElementsAre(2048, 1024));
  EXPECT_THAT(inventory.Find("model.layers.0.self_attn.k_proj.weight")->shape,
              ElementsAre(1024, 1024));
  EXPECT_THAT(inventory.Find("model.layers.0.self_attn.o_proj.weight")->shape,
              ElementsAre(1024, 2048));
  EXPECT_THAT(inventory.Find("model.layers.0.self_attn.k_norm.weight")->shape, ElementsAre(128));
  EXPECT_EQ(inventory.Find("model.layers.0.self_attn.q_proj.bias"), nullptr);
  const TensorInventory qwen2 = InventoryOf(kQwen2);
  EXPECT_THAT(qwen2.Find("model.layers.0.self_attn.v_proj.bias")->shape, ElementsAre(128));
  EXPECT_EQ(qwen2.Find("model.layers.0.self_attn.o_proj.bias"), nullptr);
}

TEST(TensorInventoryTest, ABaseModelHasNoPrefixAndNoHead) {
  const TensorInventory inventory = *BuildInventory(*ReadHfConfig(
      R"({"architectures": ["LlamaModel"], "num_hidden_layers": 1})"));
  EXPECT_NE(inventory.Find("layers.0.mlp.up_proj.weight"), nullptr);
  EXPECT_NE(inventory.Find("embed_tokens.weight"), nullptr);
  EXPECT_EQ(inventory.Find("lm_head.weight"), nullptr);
}

TEST(TensorInventoryTest, LayersWithBias) {
  const TensorInventory inventory = *BuildInventory(*ReadHfConfig(
      R"({"architectures": ["LlamaModel"], "num_hidden_layers": 1, "mlp_bias": true,
          "attention_bias": true})"));
  EXPECT_NE(inventory.Find("layers.0.mlp.up_proj.bias"), nullptr);
  EXPECT_NE(inventory.Find("layers.0.self_attn.o_proj.bias"), nullptr);
}

TEST(TensorInventoryTest, RefusesAConfigOutOfBounds) {
  ModelConfig config = *ReadHfConfig(kMiniLm.config_json);
  config.vocab_size = kModelDimensionMax + 1;
  EXPECT_THAT(BuildInventory(config), HasReason(Reason::kInvalidCheckpoint));
}

}  // namespace
}  // namespace planewise
