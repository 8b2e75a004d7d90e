#include "planner/memory_model.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/hf_config_reader.h"
#include "planner/published_configs.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

using testing::HasSubstr;
using enum BackwardOverride;

TensorInventory InventoryOf(const PublishedModel& model) {
  return *BuildInventory(*ReadHfConfig(model.config_json));
}

PlanOptions Mxfp8(BackwardOverride backward_override) {
  PlanOptions options;
  options.recipe = DefaultRecipe(Format::kMxfp8);
  options.recipe.backward_override = backward_override;
  return options;
}

// One hosted layer, without bias.
TensorInventory OneLayer(MatrixShape shape, DType dtype = DType::kBF16) {
  InventoryTensor weight;
  weight.name = "x.weight";
  weight.shape = {shape.out, shape.in};
  weight.layer = "x";
  weight.hosted = true;
  weight.dtype = dtype;
  TensorInventory inventory;
  inventory.architecture = "OneLayer";
  inventory.tensors.push_back(weight);
  return inventory;
}

TEST(MemoryModelTest, ALargeWeightHasTheStatedBytesFrozenOrNot) {
  for (const bool trainable : {false, true}) {
    for (const auto& [backward_override, bytes] :
         {std::pair<BackwardOverride, int64_t>{kNone, 34'603'008},
          {kHighPrecision, 17'301'504},
          {kDequantized, 17'301'504}}) {
      PlanOptions options = Mxfp8(backward_override);
      options.trainable = trainable;
      PW_ASSERT_OK_AND_ASSIGN(const ModelPlan plan, PlanModel(OneLayer({4096, 4096}), options));
      EXPECT_EQ(plan.totals.persistent_bytes, bytes) << Name(backward_override);
    }
  }
}

// Bytes by hand: 25 weights [384, 384] of 147,456 + 4,608 per plane, 12 of
// [1536, 384] or [384, 1536] of 589,824 + 18,432; 21,120 biases of 2 bytes.
TEST(MemoryModelTest, MiniLmByHand) {
  PW_ASSERT_OK_AND_ASSIGN(const ModelPlan plan, PlanModel(InventoryOf(kMiniLm), Mxfp8(kNone)));
  EXPECT_EQ(plan.layers.size(), 37u);
  EXPECT_EQ(plan.totals.row.payload_bytes, 10'764'288);
  EXPECT_EQ(plan.totals.row.scale_bytes, 336'384);
  EXPECT_EQ(plan.totals.column.payload_bytes, 10'764'288);
  EXPECT_EQ(plan.totals.column.scale_bytes, 336'384);
  EXPECT_EQ(plan.totals.high_precision.total_bytes(), 0);
  EXPECT_EQ(plan.totals.bias_bytes, 42'240);
  EXPECT_EQ(plan.totals.persistent_bytes, 22'243'584);
  EXPECT_EQ(plan.totals.hosted_parameters, kMiniLm.hosted_parameters);
  EXPECT_EQ(plan.totals.hosted_parameters + plan.totals.local_parameters, kMiniLm.parameters);
  EXPECT_EQ(plan.totals.source_bytes + plan.totals.local_bytes, 90'852'864);

  PW_ASSERT_OK_AND_ASSIGN(const ModelPlan row_only,
                          PlanModel(InventoryOf(kMiniLm), Mxfp8(kDequantized)));
  EXPECT_EQ(row_only.totals.persistent_bytes, 11'142'912);
  EXPECT_EQ(row_only.totals.column.total_bytes(), 0);
}

TEST(MemoryModelTest, LlamaTotals) {
  const TensorInventory inventory = InventoryOf(kLlama3);
  // All dimensions are multiples of 128: exactly 1 + 1/32 bytes a parameter.
  PW_ASSERT_OK_AND_ASSIGN(const ModelPlan row, PlanModel(inventory, Mxfp8(kDequantized)));
  EXPECT_EQ(row.totals.persistent_bytes, 7'197'425'664);
  PW_ASSERT_OK_AND_ASSIGN(const ModelPlan both, PlanModel(inventory, Mxfp8(kNone)));
  EXPECT_EQ(both.totals.persistent_bytes, 14'394'851'328);
  PW_ASSERT_OK_AND_ASSIGN(const ModelPlan bf16, PlanModel(inventory, PlanOptions{}));
  EXPECT_EQ(bf16.totals.persistent_bytes, 13'958'643'712);
  EXPECT_EQ(bf16.totals.high_precision.total_bytes(), 13'958'643'712);
}

TEST(MemoryModelTest, ListsWhatStaysLocal) {
  PW_ASSERT_OK_AND_ASSIGN(const ModelPlan plan, PlanModel(InventoryOf(kQwen2), Mxfp8(kNone)));
  const LocalTensorPlan& embedding = plan.local.front();
  EXPECT_EQ(embedding.tensor.name, "model.embed_tokens.weight");
  EXPECT_EQ(embedding.source_bytes, 151936 * 896 * 2);
  const LocalTensorPlan& head = plan.local.back();
  EXPECT_EQ(head.tensor.name, "lm_head.weight");
  EXPECT_EQ(head.source_bytes, 0);
  EXPECT_THAT(head.tensor.why, HasSubstr("tied with"));
  EXPECT_EQ(plan.totals.local_parameters + plan.totals.hosted_parameters, kQwen2.parameters);
}

TEST(MemoryModelTest, BiasesFollowTheirWeights) {
  PW_ASSERT_OK_AND_ASSIGN(const ModelPlan plan, PlanModel(InventoryOf(kQwen2), Mxfp8(kNone)));
  EXPECT_EQ(plan.layers[0].name, "model.layers.0.self_attn.q_proj");
  EXPECT_EQ(plan.layers[0].bias_bytes(), 896 * 2);
  EXPECT_EQ(plan.layers[3].name, "model.layers.0.self_attn.o_proj");
  EXPECT_EQ(plan.layers[3].bias_bytes(), 0);
  EXPECT_EQ(plan.layers[3].persistent_bytes(), plan.layers[3].weight_bytes());
}

// The largest tensor is [1536, 384] or its like: F32 read, then cast to BF16.
TEST(MemoryModelTest, LoadPeakIsOneTensorAndItsCast) {
  PW_ASSERT_OK_AND_ASSIGN(const ModelPlan cast, PlanModel(InventoryOf(kMiniLm), Mxfp8(kNone)));
  EXPECT_EQ(cast.load_peak.source_bytes, 1536 * 384 * 4);
  EXPECT_EQ(cast.load_peak.cast_bytes, 1536 * 384 * 2);
  EXPECT_EQ(cast.load_peak.tensor, "encoder.layer.0.intermediate.dense.weight");
  EXPECT_EQ(cast.totals.load_peak_bytes, 3'538'944);
  EXPECT_EQ(cast.totals.loading_bytes, cast.totals.persistent_bytes + 3'538'944);

  PW_ASSERT_OK_AND_ASSIGN(const ModelPlan plain, PlanModel(InventoryOf(kLlama3), Mxfp8(kNone)));
  EXPECT_EQ(plain.load_peak.source_bytes, 14336 * 4096 * 2);
  EXPECT_EQ(plain.load_peak.cast_bytes, 0);
}

struct SavedCase {
  const char* name;
  int64_t tokens;
  DType activation;
  SavedOperandBytes want;
};

TEST(MemoryModelTest, SavedOperandsFollowTheOverride) {
  const SavedCase cases[] = {
      {"whole blocks",
       128,
       DType::kBF16,
       {128 * 384 + 4 * 384, 128 * 384 * 2, 128 * 384 + 128 * 12}},
      {"FP32 activations cost only where X itself is kept",
       128,
       DType::kF32,
       {128 * 384 + 4 * 384, 128 * 384 * 4, 128 * 384 + 128 * 12}},
      {"scales are padded, codes are not",
       33,
       DType::kBF16,
       {33 * 384 + 4 * 384, 33 * 384 * 2, 33 * 384 + 128 * 12}},
      {"one token", 1, DType::kBF16, {384 + 4 * 384, 384 * 2, 384 + 128 * 12}},
      {"no token", 0, DType::kBF16, {0, 0, 0}},
  };
  for (const SavedCase& test : cases) {
    SCOPED_TRACE(test.name);
    PlanOptions options = Mxfp8(kNone);
    options.trainable = true;
    options.activation = test.activation;
    PW_ASSERT_OK_AND_ASSIGN(const SavedOperandBytes saved, SavedBytes(options, 384, test.tokens));
    EXPECT_EQ(saved.none, test.want.none);
    EXPECT_EQ(saved.high_precision, test.want.high_precision);
    EXPECT_EQ(saved.dequantized, test.want.dequantized);
  }
}

TEST(MemoryModelTest, FrozenModelsAndInferenceSaveNoX) {
  PlanOptions frozen = Mxfp8(kHighPrecision);
  PlanOptions inference = Mxfp8(kHighPrecision);
  inference.trainable = true;
  inference.backward_enabled = false;
  for (const PlanOptions& options : {frozen, inference}) {
    PW_ASSERT_OK_AND_ASSIGN(const SavedOperandBytes saved, SavedBytes(options, 384, 128));
    EXPECT_EQ(saved.none + saved.high_precision + saved.dequantized, 0);
  }
}

TEST(MemoryModelTest, HighPrecisionSavesXItself) {
  PlanOptions options;
  options.trainable = true;
  PW_ASSERT_OK_AND_ASSIGN(const SavedOperandBytes saved, SavedBytes(options, 384, 128));
  EXPECT_EQ(saved.none, 128 * 384 * 2);
}

TEST(MemoryModelTest, SessionsMultiply) {
  PlanOptions options = Mxfp8(kNone);
  options.trainable = true;
  options.load = {.sessions = 2,
                  .tokens = 128,
                  .input_window_bytes = 1000,
                  .result_budget_bytes = 50,
                  .gemm_workspace_bytes = 7};
  PW_ASSERT_OK_AND_ASSIGN(const ModelPlan plan, PlanModel(InventoryOf(kMiniLm), options));
  // 31 layers read 384 features and 6 read 1536.
  const int64_t per_session = 31 * (128 * 384 + 4 * 384) + 6 * (128 * 1536 + 4 * 1536);
  EXPECT_EQ(plan.totals.saved_operand_bytes, 2 * per_session);
  EXPECT_EQ(plan.totals.transport_bytes, 2 * 1050);
  EXPECT_EQ(plan.totals.serving_bytes,
            plan.totals.persistent_bytes + 2 * per_session + 2 * 1050 + 7);
  EXPECT_EQ(plan.totals.required_bytes, plan.totals.serving_bytes);
}

TEST(MemoryModelTest, RefusesShapesWithEveryWeightThatBreaksARule) {
  TensorInventory inventory = OneLayer({896, 712});
  inventory.tensors.push_back(OneLayer({64, 64}).tensors[0]);
  inventory.tensors.push_back(OneLayer({16, 64}).tensors[0]);
  inventory.tensors.back().name = "y.weight";
  const absl::Status status = PlanModel(inventory, Mxfp8(kNone)).status();
  EXPECT_THAT(status, HasReason(Reason::kShapeNotDivisible,
                                "weight \"x.weight\": in_features 712 % 32 = 8; mxfp8 needs a "
                                "multiple of 32; pad to 736 (and 1 more weights)"));
  const auto details = DetailsOf(status);
  ASSERT_EQ(details->violations.size(), 2u);
  EXPECT_EQ(details->violations[1].subject, "y.weight");
  EXPECT_THAT(details->violations[1].description, HasSubstr("out_features 16 % 32"));
  PW_EXPECT_OK(PlanModel(inventory, PlanOptions{}));
}

struct BadCase {
  const char* name;
  PlanOptions options;
  Reason reason;
};

TEST(MemoryModelTest, RefusesBadOptions) {
  PlanOptions integer_weights;
  integer_weights.nominal = DType::kI8;
  PlanOptions negative;
  negative.load.tokens = -1;
  PlanOptions endless = Mxfp8(kNone);
  endless.trainable = true;
  endless.load.sessions = int64_t{1} << 40;
  endless.load.tokens = int64_t{1} << 30;
  PlanOptions pointless_override;
  pointless_override.recipe.backward_override = kDequantized;
  PlanOptions half_nvfp4;
  half_nvfp4.recipe = DefaultRecipe(Format::kNvfp4);
  half_nvfp4.nominal = DType::kF16;
  const BadCase cases[] = {
      {"weights that are integers", integer_weights, Reason::kDtypeUnsupported},
      {"a negative number of tokens", negative, Reason::kInvalidRequest},
      {"sessions that overflow", endless, Reason::kLimitExceeded},
      {"an override of nothing", pointless_override, Reason::kOverrideUnsupportedForRecipe},
      {"nvfp4 of F16", half_nvfp4, Reason::kDtypeUnsupported},
  };
  for (const BadCase& test : cases) {
    SCOPED_TRACE(test.name);
    EXPECT_THAT(PlanModel(InventoryOf(kMiniLm), test.options), HasReason(test.reason));
  }
}

}  // namespace
}  // namespace planewise
