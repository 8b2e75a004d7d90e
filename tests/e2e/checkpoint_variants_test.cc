// One model in every way that a checkpoint may be stored comes to the same bytes:
// whole and in shards, in F32, BF16 and F16.

#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/posix_file_system.h"
#include "core/numeric/bfloat16.h"
#include "core/numeric/float16.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/collected_weights.h"
#include "tests/e2e/test_daemon.h"
#include "tests/testing/hf_model.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

using testing::SizeIs;

// Every value of an F32 tensor.
std::vector<float> ValuesOf(const ModelTensor& tensor) {
  std::vector<float> values(tensor.bytes.size() / sizeof(float));
  std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

template <typename T>
void SetValues(ModelTensor& tensor, DType dtype, const std::vector<T>& values) {
  tensor.tensor.dtype = dtype;
  tensor.bytes.resize(values.size() * sizeof(T));
  std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
}

// A tiny BERT of multiples of 2^-10 below 1/8: each type of a checkpoint has them
// exactly, also BF16 with its 8 bits.
std::vector<ModelTensor> ExactTensors(DType dtype) {
  std::vector<ModelTensor> tensors = RandomTensors(kTinyBert, DType::kF32, 3);
  for (ModelTensor& tensor : tensors) {
    std::vector<float> values = ValuesOf(tensor);
    for (float& value : values) value = static_cast<float>(static_cast<int>(value * 1024)) / 1024;
    if (dtype == DType::kF16) {
      std::vector<Float16> narrow;
      for (const float value : values) narrow.push_back(Float16::FromFloat(value));
      SetValues(tensor, dtype, narrow);
    } else if (dtype == DType::kBF16) {
      std::vector<BFloat16> narrow;
      for (const float value : values) narrow.push_back(BFloat16::FromFloat(value));
      SetValues(tensor, dtype, narrow);
    } else {
      SetValues(tensor, dtype, values);
    }
  }
  return tensors;
}

class CheckpointVariantsTest : public testing::Test {
 protected:
  // Loads the checkpoint at `path` and gives all that the daemon stores of it.
  std::map<std::string, std::string> Load(const std::string& name, const std::string& path) {
    v1::CreateModelRequest create = CreateRequest(name, path, v1::BACKWARD_OVERRIDE_DEQUANTIZED);
    PW_EXPECT_OK(client_->CreateModel(create));
    CollectedWeights sink;
    v1::ReadWeightsRequest read;
    read.set_name(name);
    for (const v1::Plane plane : {v1::PLANE_ROW, v1::PLANE_HIGH_PRECISION}) {
      read.set_plane(plane);
      PW_EXPECT_OK(client_->ReadWeights(read, sink));
    }
    return sink.parts;
  }

  std::string Write(const std::string& name, const std::vector<ModelTensor>& tensors) {
    const std::string path = absl::StrCat(daemon_.root(), "/", name);
    PW_EXPECT_OK(WriteHfModel(PosixFileSystem(), path, kTinyBert, tensors));
    return path;
  }

  TestDaemon daemon_;
  std::unique_ptr<Client> client_ = daemon_.Connect();
};

TEST_F(CheckpointVariantsTest, EveryDtypeComesToTheSameBytes) {
  const auto f32 = Load("f32", Write("f32", ExactTensors(DType::kF32)));
  // Payload and scales of seven weights, and seven biases.
  EXPECT_THAT(f32, SizeIs(21));
  EXPECT_EQ(Load("bf16", Write("bf16", ExactTensors(DType::kBF16))), f32);
  EXPECT_EQ(Load("f16", Write("f16", ExactTensors(DType::kF16))), f32);
}

TEST_F(CheckpointVariantsTest, ShardsComeToTheBytesOfTheWhole) {
  const std::vector<ModelTensor> tensors = ExactTensors(DType::kF32);
  const auto whole = Load("whole", Write("whole", tensors));

  // A weight and its bias often lie in different shards.
  std::vector<ModelTensor> shards[2];
  std::string weight_map;
  for (size_t i = 0; i < tensors.size(); ++i) {
    shards[i % 2].push_back(tensors[i]);
    absl::StrAppend(&weight_map, i == 0 ? "" : ",", "\"", tensors[i].tensor.name,
                    "\": \"model-0000", i % 2 + 1, "-of-00002.safetensors\"");
  }
  const std::string path = Write("sharded", {});
  PW_ASSERT_OK(PosixFileSystem().Remove(path + "/model.safetensors"));
  for (int shard = 0; shard < 2; ++shard) {
    std::vector<SafetensorsContent> contents;
    for (const ModelTensor& tensor : shards[shard]) {
      contents.push_back({tensor.tensor, tensor.bytes});
    }
    PW_ASSERT_OK(WriteSafetensors(
        PosixFileSystem(),
        absl::StrCat(path, "/model-0000", shard + 1, "-of-00002.safetensors"), contents));
  }
  std::ofstream(path + "/model.safetensors.index.json")
      << "{\"metadata\": {}, \"weight_map\": {" << weight_map << "}}";
  EXPECT_EQ(Load("sharded", path), whole);
}

}  // namespace
}  // namespace planewise
