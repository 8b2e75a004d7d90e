#include "planner/plan_json.h"

#include <fstream>
#include <set>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "planner/hf_config_reader.h"
#include "planner/published_configs.h"

namespace planewise {
namespace {

using Json = nlohmann::json;

Json MiniLmPlan() {
  const TensorInventory inventory = *BuildInventory(*ReadHfConfig(kMiniLm.config_json));
  PlanOptions options;
  options.recipe = DefaultRecipe(Format::kMxfp8);
  options.trainable = true;
  options.future_modes = {BackwardOverride::kDequantized};
  options.load.sessions = 1;
  options.load.tokens = 128;
  PlanJsonParts parts;
  parts.fit = *CheckFit(inventory, options, 20'000'000);
  parts.what_if = WhatIf(inventory, options);
  return Json::parse(PlanJson(*PlanModel(inventory, options), parts));
}

TEST(PlanJsonTest, HoldsTheExactNumbers) {
  const Json json = MiniLmPlan();
  EXPECT_EQ(json["schema"], "planewise.plan/1");
  EXPECT_EQ(json["options"]["recipe"]["format"], "mxfp8");
  EXPECT_EQ(json["options"]["future_modes"], Json({"dequantized"}));
  EXPECT_EQ(json["totals"]["persistent_bytes"], 22'243'584);
  EXPECT_EQ(json["totals"]["saved_operand_bytes"], 2'787'840);
  ASSERT_EQ(json["layers"].size(), 37u);
  const Json& layer = json["layers"][4];
  EXPECT_EQ(layer["name"], "encoder.layer.0.intermediate.dense");
  EXPECT_EQ(layer["shape"], Json({1536, 384}));
  EXPECT_EQ(layer["planes"][1]["plane"], "column");
  EXPECT_EQ(layer["planes"][1]["scale_shape"], Json({48, 384}));
  EXPECT_EQ(json["local"][0]["name"], "embeddings.word_embeddings.weight");
  EXPECT_EQ(json["fit"]["fits"], false);
  EXPECT_EQ(json["what_if"].size(), 54u);
  EXPECT_TRUE(json["what_if"][4].contains("refused"));
}

TEST(PlanJsonTest, LeavesOutWhatWasNotAskedFor) {
  const TensorInventory inventory = *BuildInventory(*ReadHfConfig(kMiniLm.config_json));
  const std::string text = PlanJson(*PlanModel(inventory, PlanOptions{}), {});
  EXPECT_EQ(text.back(), '\n');
  const Json json = Json::parse(text);
  EXPECT_FALSE(json.contains("fit"));
  EXPECT_FALSE(json.contains("what_if"));
  EXPECT_TRUE(json["layers"][0]["planes"][0]["scale_dtype"].is_null());
}

void CollectKeys(const Json& json, std::set<std::string>& keys) {
  if (json.is_object()) {
    for (const auto& item : json.items()) keys.insert(item.key());
  }
  if (json.is_structured()) {
    for (const Json& child : json) CollectKeys(child, keys);
  }
}

TEST(PlanJsonTest, EveryKeyIsDocumented) {
  std::ifstream file("planner/PLAN_JSON.md");
  std::stringstream page;
  page << file.rdbuf();
  ASSERT_FALSE(page.str().empty());
  std::set<std::string> keys;
  CollectKeys(MiniLmPlan(), keys);
  EXPECT_GT(keys.size(), 60u);
  for (const std::string& key : keys) {
    EXPECT_TRUE(absl::StrContains(page.str(), absl::StrCat("`", key, "`"))) << key;
  }
}

}  // namespace
}  // namespace planewise
