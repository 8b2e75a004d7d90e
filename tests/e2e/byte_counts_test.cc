// One weight, [4096, 4096] in MXFP8, counted five ways: the plan before anything
// is loaded, the plan that the daemon shows, what describe says, what the
// allocator holds, what lies on disk. All say the same number, which is written
// out here.
//
// Not here: the bytes of other shapes (core/tensor/plane_layout_test.cc,
// tests/property/memory_model_property_test.cc).

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "clients/cpp/client.h"
#include "core/base/posix_file_system.h"
#include "core/checkpoint/safetensors_reader.h"
#include "core/tensor/memory_budget.h"
#include "gtest/gtest.h"
#include "planner/hf_config_reader.h"
#include "planner/memory_model.h"
#include "planner/tensor_inventory.h"
#include "tests/e2e/test_daemon.h"
#include "tests/testing/hf_model.h"
#include "tests/testing/scratch_directory.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

// Three weights of [4096, 4096] in its MLP, four small ones, no biases.
constexpr absl::string_view kConfig = R"({
  "architectures": ["LlamaModel"], "model_type": "llama", "hidden_size": 4096,
  "intermediate_size": 4096, "num_hidden_layers": 1, "num_attention_heads": 1,
  "num_key_value_heads": 1, "head_dim": 32, "vocab_size": 32, "torch_dtype": "bfloat16"
})";
constexpr char kWeight[] = "layers.0.mlp.up_proj.weight";

// Payload 4096², and a scale for each 32 of them: 128 columns, no padding.
constexpr int64_t kPlaneBytes = 4096 * 4096 + 4096 * 128;
static_assert(kPlaneBytes == 17'301'504);

struct Case {
  const char* name;
  BackwardOverride planned;
  v1::BackwardOverride requested;
  bool trainable;
  int64_t want_bytes;
};

constexpr Case kCases[] = {
    {"NoneFrozen", BackwardOverride::kNone, v1::BACKWARD_OVERRIDE_NONE, false, 34'603'008},
    {"NoneTrainable", BackwardOverride::kNone, v1::BACKWARD_OVERRIDE_NONE, true, 34'603'008},
    {"DequantizedFrozen", BackwardOverride::kDequantized, v1::BACKWARD_OVERRIDE_DEQUANTIZED, false,
     17'301'504},
    {"DequantizedTrainable", BackwardOverride::kDequantized, v1::BACKWARD_OVERRIDE_DEQUANTIZED,
     true, 17'301'504},
    {"HighPrecisionFrozen", BackwardOverride::kHighPrecision, v1::BACKWARD_OVERRIDE_HIGH_PRECISION,
     false, 17'301'504},
    {"HighPrecisionTrainable", BackwardOverride::kHighPrecision,
     v1::BACKWARD_OVERRIDE_HIGH_PRECISION, true, 17'301'504},
};

class ByteCountsTest : public testing::TestWithParam<Case> {
 protected:
  // The directory is the same for all cases: it takes longer to make than to load.
  static void SetUpTestSuite() {
    directory_ = std::make_unique<ScratchDirectory>();
    PW_ASSERT_OK(WriteHfModel(PosixFileSystem(), ModelPath(), kConfig,
                              RandomTensors(kConfig, DType::kBF16, 1)));
  }
  static void TearDownTestSuite() { directory_.reset(); }

  static std::string ModelPath() { return directory_->path() + "/model"; }

  static std::unique_ptr<ScratchDirectory> directory_;
};

std::unique_ptr<ScratchDirectory> ByteCountsTest::directory_;

struct ByteCounts {
  int64_t weight_bytes = 0;
  int64_t model_bytes = 0;
};

void Plan(const Case& wanted, ByteCounts& planned) {
  PW_ASSERT_OK_AND_ASSIGN(const ModelConfig config, ReadHfConfig(kConfig));
  PW_ASSERT_OK_AND_ASSIGN(const TensorInventory inventory, BuildInventory(config));
  PlanOptions options;
  options.recipe = DefaultRecipe(Format::kMxfp8);
  options.recipe.backward_override = wanted.planned;
  options.trainable = wanted.trainable;
  PW_ASSERT_OK_AND_ASSIGN(const ModelPlan plan, PlanModel(inventory, options));
  for (const LayerPlan& layer : plan.layers) {
    if (layer.weight == kWeight) planned.weight_bytes = layer.weight_bytes();
  }
  planned.model_bytes = plan.totals.persistent_bytes;
}

// Bytes of a weight's tensors, and of all, in the segments of a stored model.
void CountOnDisk(const std::string& model_directory, ByteCounts& stored) {
  for (const auto& segment : std::filesystem::directory_iterator(model_directory + "/segments")) {
    PW_ASSERT_OK_AND_ASSIGN(const SafetensorsReader reader,
                            SafetensorsReader::Open(PosixFileSystem(), segment.path().string()));
    for (const SafetensorsEntry& part : reader.header().tensors) {
      stored.model_bytes += part.length;
      if (absl::StartsWith(part.name, std::string(kWeight) + "#")) {
        stored.weight_bytes += part.length;
      }
    }
  }
}

TEST_P(ByteCountsTest, PlanDescribeAllocatorAndDiskAgree) {
  const Case& wanted = GetParam();
  ByteCounts planned;
  ASSERT_NO_FATAL_FAILURE(Plan(wanted, planned));
  EXPECT_EQ(planned.weight_bytes, wanted.want_bytes);

  TestDaemon daemon([&](ServerOptions& options) { options.roots = {directory_->path()}; });
  const std::unique_ptr<Client> client = daemon.Connect();
  v1::CreateModelRequest create = CreateRequest("m", ModelPath(), wanted.requested);
  create.set_trainable(wanted.trainable);
  PW_ASSERT_OK_AND_ASSIGN(const v1::Model created, client->CreateModel(create));

  v1::GetModelRequest get;
  get.set_name("m");
  PW_ASSERT_OK_AND_ASSIGN(const v1::Model described, client->GetModel(get));
  int64_t described_bytes = 0;
  for (const v1::LayerDescription& layer : described.layers()) {
    if (layer.weight().name() != kWeight) continue;
    EXPECT_EQ(layer.weight().planned_bytes(), wanted.want_bytes);
    EXPECT_EQ(layer.weight().actual_bytes(), wanted.want_bytes);
    EXPECT_EQ(layer.weight().planes_size(), wanted.want_bytes / kPlaneBytes);
    for (const v1::PlaneBytes& plane : layer.weight().planes()) {
      described_bytes += plane.payload_bytes() + plane.scale_bytes() + plane.state_bytes();
    }
  }
  EXPECT_EQ(described_bytes, wanted.want_bytes);
  EXPECT_EQ(described.planned_bytes(), planned.model_bytes);
  EXPECT_EQ(described.actual_bytes(), planned.model_bytes);
  EXPECT_EQ(daemon.server().budget().used_bytes(MemoryUse::kWeights), planned.model_bytes);

  v1::SaveModelRequest save;
  save.set_name("m");
  PW_ASSERT_OK_AND_ASSIGN(const v1::SaveResult saved, client->SaveModel(save));
  ByteCounts stored;
  ASSERT_NO_FATAL_FAILURE(CountOnDisk(saved.path(), stored));
  EXPECT_EQ(stored.weight_bytes, wanted.want_bytes);
  EXPECT_EQ(stored.model_bytes, planned.model_bytes);
}

INSTANTIATE_TEST_SUITE_P(Overrides, ByteCountsTest, testing::ValuesIn(kCases),
                         [](const testing::TestParamInfo<Case>& info) { return info.param.name; });

}  // namespace
}  // namespace planewise
