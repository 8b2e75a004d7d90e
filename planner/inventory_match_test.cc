#include "planner/inventory_match.h"

#include <functional>

#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/hf_config_reader.h"
#include "planner/published_configs.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Source = std::vector<SourceTensor>;

TensorInventory InventoryOf(absl::string_view config_json) {
  return *BuildInventory(*ReadHfConfig(config_json));
}

// The checkpoint that fits an inventory exactly, tied tensors left out.
Source SourceOf(const TensorInventory& inventory) {
  Source source;
  for (const InventoryTensor& tensor : inventory.tensors) {
    if (tensor.tied_to.empty()) source.push_back({tensor.name, tensor.dtype, tensor.shape});
  }
  return source;
}

SourceTensor& Find(Source& source, absl::string_view name) {
  for (SourceTensor& tensor : source) {
    if (tensor.name == name) return tensor;
  }
  ADD_FAILURE() << "no tensor " << name;
  return source.front();
}

TEST(InventoryMatchTest, AnExactCheckpointMatches) {
  for (const PublishedModel& model : kPublishedModels) {
    SCOPED_TRACE(model.name);
    const TensorInventory inventory = InventoryOf(model.config_json);
    PW_ASSERT_OK_AND_ASSIGN(const InventoryMatch match,
                            MatchInventory(inventory, SourceOf(inventory)));
    EXPECT_TRUE(match.ignored.empty());
    for (const InventoryTensor& tensor : match.inventory.tensors) {
      EXPECT_EQ(tensor.source_name, tensor.tied_to.empty() ? tensor.name : "");
    }
  }
}

TEST(InventoryMatchTest, TakesTheDtypesOfTheCheckpoint) {
  const TensorInventory inventory = InventoryOf(kMiniLm.config_json);
  Source source = SourceOf(inventory);
  Find(source, "pooler.dense.weight").dtype = DType::kF16;
  PW_ASSERT_OK_AND_ASSIGN(const InventoryMatch match, MatchInventory(inventory, source));
  EXPECT_EQ(match.inventory.Find("pooler.dense.weight")->dtype, DType::kF16);
  EXPECT_EQ(match.inventory.Find("pooler.dense.bias")->dtype, DType::kF32);
}

TEST(InventoryMatchTest, TheBasePrefixMayBeThereOrNot) {
  const TensorInventory bert = InventoryOf(kMiniLm.config_json);
  Source prefixed = SourceOf(bert);
  for (SourceTensor& tensor : prefixed) tensor.name = "bert." + tensor.name;
  PW_ASSERT_OK_AND_ASSIGN(const InventoryMatch with_prefix, MatchInventory(bert, prefixed));
  EXPECT_EQ(with_prefix.inventory.Find("pooler.dense.bias")->source_name,
            "bert.pooler.dense.bias");

  const TensorInventory llama = InventoryOf(kLlama3.config_json);
  Source bare = SourceOf(llama);
  for (SourceTensor& tensor : bare) {
    tensor.name = std::string(absl::StripPrefix(tensor.name, "model."));
  }
  PW_ASSERT_OK_AND_ASSIGN(const InventoryMatch without_prefix, MatchInventory(llama, bare));
  EXPECT_EQ(without_prefix.inventory.Find("model.norm.weight")->source_name, "norm.weight");
  EXPECT_EQ(without_prefix.inventory.Find("lm_head.weight")->source_name, "lm_head.weight");
}

TEST(InventoryMatchTest, IgnoresBuffersAndSaysSo) {
  const TensorInventory bert = InventoryOf(kMiniLm.config_json);
  Source source = SourceOf(bert);
  source.push_back({"embeddings.position_ids", DType::kI64, {1, 512}});
  PW_ASSERT_OK_AND_ASSIGN(const InventoryMatch match, MatchInventory(bert, source));
  EXPECT_THAT(match.ignored, ElementsAre("embeddings.position_ids"));

  const TensorInventory llama = InventoryOf(kLlama3.config_json);
  source = SourceOf(llama);
  source.push_back({"model.layers.0.self_attn.rotary_emb.inv_freq", DType::kF32, {64}});
  PW_EXPECT_OK(MatchInventory(llama, source));
}

TEST(InventoryMatchTest, ATiedHeadMayBeStored) {
  const TensorInventory inventory = InventoryOf(kQwen2.config_json);
  Source source = SourceOf(inventory);
  source.push_back({"lm_head.weight", DType::kBF16, {151936, 896}});
  PW_EXPECT_OK(MatchInventory(inventory, source));
  source.back().shape = {151936, 895};
  EXPECT_THAT(MatchInventory(inventory, source), HasReason(Reason::kShapeMismatch));
}

struct DifferenceCase {
  const char* name;
  std::function<void(Source&)> change;
  Reason reason;
  const char* message;
};

TEST(InventoryMatchTest, NamesTensorObservedAndExpected) {
  const DifferenceCase cases[] = {
      {"a shape", [](Source& s) { Find(s, "pooler.dense.weight").shape = {384, 383}; },
       Reason::kShapeMismatch,
       "tensor \"pooler.dense.weight\": shape [384, 383], expected [384, 384]"},
      {"a transposed weight",
       [](Source& s) { Find(s, "encoder.layer.0.output.dense.weight").shape = {1536, 384}; },
       Reason::kShapeMismatch,
       "\"encoder.layer.0.output.dense.weight\": shape [1536, 384], expected [384, 1536]: looks "
       "transposed; weights are [out, in]"},
      {"a rank", [](Source& s) { Find(s, "pooler.dense.bias").shape = {1, 384}; },
       Reason::kShapeMismatch, "shape [1, 384], expected [384]"},
      {"a scalar", [](Source& s) { Find(s, "pooler.dense.bias").shape = {}; },
       Reason::kShapeMismatch, "shape [], expected [384]"},
      {"missing", [](Source& s) { s.pop_back(); }, Reason::kInvalidCheckpoint,
       "tensor \"pooler.dense.bias\": missing; expected [384]"},
      {"extra", [](Source& s) { s.push_back({"classifier.weight", DType::kF32, {2, 384}}); },
       Reason::kInvalidCheckpoint,
       "tensor \"classifier.weight\": unexpected [2, 384]: BertModel has no such tensor"},
      {"twice", [](Source& s) { s.push_back(s.back()); }, Reason::kInvalidCheckpoint,
       "tensor \"pooler.dense.bias\": is there twice"},
      {"twice, once with a prefix",
       [](Source& s) { s.push_back({"bert.pooler.dense.bias", DType::kF32, {384}}); },
       Reason::kInvalidCheckpoint, "twice, also as \"pooler.dense.bias\""},
      {"a packed type", [](Source& s) { Find(s, "pooler.dense.weight").dtype = DType::kI8; },
       Reason::kDtypeUnsupported, "dtype I8; required F32, F16 or BF16"},
  };
  const TensorInventory inventory = InventoryOf(kMiniLm.config_json);
  for (const DifferenceCase& test : cases) {
    SCOPED_TRACE(test.name);
    Source source = SourceOf(inventory);
    test.change(source);
    const auto match = MatchInventory(inventory, source);
    EXPECT_THAT(match, HasReason(test.reason, HasSubstr(test.message)));
  }
}

TEST(InventoryMatchTest, ListsAllDifferencesUpToALimit) {
  const TensorInventory inventory = InventoryOf(kMiniLm.config_json);
  Source source = SourceOf(inventory);
  Find(source, "pooler.dense.weight").shape = {384, 1};
  source.push_back({"extra", DType::kF32, {}});
  absl::Status status = MatchInventory(inventory, source).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("(and 1 more differences)"));
  EXPECT_EQ(DetailsOf(status)->violations.size(), 2u);

  status = MatchInventory(inventory, {}).status();
  EXPECT_EQ(DetailsOf(status)->violations.size(), 20u);
  EXPECT_EQ(*DetailsOf(status)->Find("differenceCount"), "103");
}

}  // namespace
}  // namespace planewise
