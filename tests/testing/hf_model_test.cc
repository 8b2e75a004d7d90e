#include "tests/testing/hf_model.h"

#include "core/base/memory_file_system.h"
#include "core/checkpoint/hf_directory.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/hf_config_reader.h"
#include "planner/inventory_match.h"
#include "planner/tensor_inventory.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

TEST(HfModelTest, DirectoryHasWhatItsConfigSays) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    MemoryFileSystem files;
    PW_ASSERT_OK(WriteHfModel(files, "/model", kTinyBert, RandomTensors(kTinyBert, dtype, 1)));
    PW_ASSERT_OK_AND_ASSIGN(const auto directory, HfDirectory::Open(files, "/model", {}));
    PW_ASSERT_OK_AND_ASSIGN(const ModelConfig config, ReadHfConfig(directory.config_json()));
    PW_ASSERT_OK_AND_ASSIGN(const TensorInventory inventory, BuildInventory(config));
    std::vector<SourceTensor> source;
    for (const auto& tensor : directory.tensors()) {
      source.push_back({tensor.name, tensor.dtype, tensor.shape});
    }
    PW_EXPECT_OK(MatchInventory(inventory, source));
  }
}

TEST(HfModelTest, ValuesFollowTheSeed) {
  const std::vector<ModelTensor> first = RandomTensors(kTinyBert, DType::kF32, 1);
  EXPECT_EQ(first[0].bytes, RandomTensors(kTinyBert, DType::kF32, 1)[0].bytes);
  EXPECT_NE(first[0].bytes, RandomTensors(kTinyBert, DType::kF32, 2)[0].bytes);
  EXPECT_NE(first[0].bytes, first[1].bytes);
}

}  // namespace
}  // namespace planewise
