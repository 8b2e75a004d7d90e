// Input that breaks other systems: each gets its code and reason, names the
// object, observed against required, and what to do. Afterwards nothing is left
// of it: no model, no memory, and the daemon works on.
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "clients/cpp/client.h"
#include "core/base/error.h"
#include "core/base/posix_file_system.h"
#include "core/gemm/cpu_gemm.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/test_daemon.h"
#include "tests/testing/hf_model.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr char kWeight[] = "encoder.layer.0.intermediate.dense.weight";

class BadInputTest : public testing::Test {
 protected:
  void SetUp() override { idle_bytes_ = daemon_.server().budget().used_bytes(); }

  // The daemon is as it was, and hosts a good model as if nothing had been.
  void TearDown() override {
    EXPECT_EQ(daemon_.server().budget().used_bytes(), idle_bytes_);
    PW_ASSERT_OK_AND_ASSIGN(const v1::ListModelsResponse list, client_->ListModels({}));
    EXPECT_THAT(list.models(), IsEmpty());
    PW_EXPECT_OK(Create("good", daemon_.WriteModel("good")));
  }

  absl::StatusOr<v1::Model> Create(const std::string& name, const std::string& path) {
    return client_->CreateModel(
        CreateRequest(name, path, v1::BACKWARD_OVERRIDE_DEQUANTIZED));
  }

  // Writes a tiny BERT after `spoil` changed its tensors, and asks for it.
  absl::Status CreateSpoilt(const std::function<void(std::vector<ModelTensor>&)>& spoil,
                            absl::string_view config = kTinyBert) {
    std::vector<ModelTensor> tensors = RandomTensors(config, DType::kF32, 1);
    spoil(tensors);
    const std::string path = daemon_.root() + "/bad";
    PW_EXPECT_OK(WriteHfModel(PosixFileSystem(), path, config, tensors));
    return Create("bad", path).status();
  }

  TestDaemon daemon_;
  std::unique_ptr<Client> client_ = daemon_.Connect();
  int64_t idle_bytes_ = 0;
};

TEST_F(BadInputTest, TruncatedFile) {
  const std::string path = daemon_.WriteModel("bad");
  const std::string file = path + "/model.safetensors";
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
  EXPECT_THAT(Create("bad", path),
              HasReason(Reason::kInvalidCheckpoint, HasSubstr("model.safetensors")));
}

TEST_F(BadInputTest, MissingShard) {
  const std::string path = daemon_.WriteModel("bad");
  std::filesystem::rename(path + "/model.safetensors",
                          path + "/model-00001-of-00002.safetensors");
  std::ofstream(path + "/model.safetensors.index.json")
      << R"({"metadata": {}, "weight_map": {
            "pooler.dense.weight": "model-00001-of-00002.safetensors",
            ")" << kWeight << R"(": "model-00002-of-00002.safetensors"}})";
  EXPECT_THAT(Create("bad", path),
              HasReason(Reason::kInvalidCheckpoint,
                        HasSubstr("model-00002-of-00002.safetensors")));
}

TEST_F(BadInputTest, SingleFileAndIndexTogetherAreAmbiguous) {
  const std::string path = daemon_.WriteModel("bad");
  std::ofstream(path + "/model.safetensors.index.json")
      << R"({"metadata": {}, "weight_map": {")" << kWeight << R"(": "model.safetensors"}})";
  EXPECT_THAT(Create("bad", path),
              HasReason(Reason::kInvalidCheckpoint, HasSubstr("model.safetensors.index.json")));
}

TEST_F(BadInputTest, HeaderLengthOfAllOnes) {
  const std::string path = daemon_.WriteModel("bad");
  std::fstream file(path + "/model.safetensors", std::ios::in | std::ios::out | std::ios::binary);
  file << "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF";
  file.close();
  EXPECT_THAT(Create("bad", path),
              HasReason(Reason::kInvalidCheckpoint,
                        AllOf(HasSubstr("model.safetensors"), HasSubstr("18446744073709551615"))));
}

TEST_F(BadInputTest, WeightThatTheBlocksDoNotDivide) {
  // [100, 64] and [64, 100]: only the 100 along the blocks is at fault.
  std::string config(kTinyBert);
  config.replace(config.find("128"), 3, "100");
  const absl::Status status = CreateSpoilt([](auto&) {}, config);
  EXPECT_THAT(status, HasReason(Reason::kShapeNotDivisible,
                                AllOf(HasSubstr("100"), HasSubstr("32"))));
  const ErrorDetails details = *DetailsOf(status);
  for (const Violation& violation : details.violations) {
    EXPECT_THAT(violation.description, Not(HasSubstr("64 % 32")));
    EXPECT_EQ(violation.reason, Reason::kShapeNotDivisible);
  }
}

TEST_F(BadInputTest, NanUnderReject) {
  const absl::Status status = CreateSpoilt([](std::vector<ModelTensor>& tensors) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    std::memcpy(FindTensor(tensors, kWeight).bytes.data() + 4 * 77, &nan, sizeof(nan));
  });
  EXPECT_THAT(status, HasReason(Reason::kNonFiniteInTensor,
                                AllOf(HasSubstr(kWeight), HasSubstr("77"))));
}

TEST_F(BadInputTest, TransposedWeight) {
  const absl::Status status = CreateSpoilt([](std::vector<ModelTensor>& tensors) {
    FindTensor(tensors, kWeight).tensor.shape = {64, 128};
  });
  EXPECT_THAT(status, HasReason(Reason::kShapeMismatch, HasSubstr(kWeight)));
  const ErrorDetails details = *DetailsOf(status);
  ASSERT_FALSE(details.violations.empty());
  EXPECT_THAT(details.violations[0].description,
              AllOf(HasSubstr("[64, 128]"), HasSubstr("[128, 64]"), HasSubstr("transposed")));
}

TEST_F(BadInputTest, MissingTensor) {
  const absl::Status status = CreateSpoilt([](std::vector<ModelTensor>& tensors) {
    std::erase_if(tensors, [](const ModelTensor& t) { return t.tensor.name == kWeight; });
  });
  EXPECT_THAT(status, HasReason(Reason::kInvalidCheckpoint, HasSubstr(kWeight)));
}

TEST_F(BadInputTest, UnknownModel) {
  v1::GetModelRequest get;
  get.set_name("nobody");
  EXPECT_THAT(client_->GetModel(get), HasReason(Reason::kNotFound, HasSubstr("\"nobody\"")));
  v1::DeleteModelRequest remove;
  remove.set_name("nobody");
  EXPECT_THAT(client_->DeleteModel(remove), HasReason(Reason::kNotFound, HasSubstr("\"nobody\"")));
}

TEST_F(BadInputTest, UnknownRecipe) {
  v1::CreateModelRequest request = CreateRequest("bad", daemon_.WriteModel("bad"),
                                                 v1::BACKWARD_OVERRIDE_NONE);
  request.mutable_recipe()->set_format("int3");
  EXPECT_THAT(client_->CreateModel(request),
              HasReason(Reason::kUnknownRecipe, AllOf(HasSubstr("\"int3\""), HasSubstr("mxfp8"))));
}

TEST_F(BadInputTest, RecipeThatThisBuildDoesNotHost) {
  v1::CreateModelRequest request = CreateRequest("bad", daemon_.WriteModel("bad"),
                                                 v1::BACKWARD_OVERRIDE_NONE);
  request.mutable_recipe()->set_format("nvfp4");
  EXPECT_THAT(client_->CreateModel(request),
              HasReason(Reason::kNotSupported, AllOf(HasSubstr("nvfp4"), HasSubstr("mxfp8"))));
}

TEST_F(BadInputTest, OverrideThatTheRecipeCannotTake) {
  v1::CreateModelRequest request = CreateRequest("bad", daemon_.WriteModel("bad"),
                                                 v1::BACKWARD_OVERRIDE_DEQUANTIZED);
  request.mutable_recipe()->set_format("none");
  EXPECT_THAT(client_->CreateModel(request),
              HasReason(Reason::kOverrideUnsupportedForRecipe, HasSubstr("dequantized")));
}

TEST_F(BadInputTest, PathOutsideTheRoots) {
  EXPECT_THAT(Create("bad", "/etc"),
              HasReason(Reason::kPathOutsideRoots, AllOf(HasSubstr("/etc"), HasSubstr("--root"))));
  // Also by a link that points out of them.
  const std::string link = daemon_.root() + "/bad";
  std::filesystem::create_directory_symlink("/etc", link);
  EXPECT_THAT(Create("bad", link), HasReason(Reason::kPathOutsideRoots));
  EXPECT_THAT(Create("bad", daemon_.root() + "/../etc"), Not(IsOk()));
}

TEST_F(BadInputTest, NamesThatAreNoNames) {
  const std::string path = daemon_.WriteModel("bad");
  for (const std::string& name : {std::string(""), std::string(".."), std::string("a/b"),
                                  std::string("a b"), std::string(129, 'a')}) {
    SCOPED_TRACE(name);
    EXPECT_THAT(Create(name, path), HasReason(Reason::kInvalidRequest));
  }
}

TEST_F(BadInputTest, CallWithoutTokenOnTcp) {
  EXPECT_THAT(Client::Connect(WithoutRetries(daemon_.tcp_address())),
              HasReason(Reason::kUnauthenticated, HasSubstr("--token-file")));
  EXPECT_THAT(Client::Connect(WithoutRetries(daemon_.tcp_address(), "guess")),
              HasReason(Reason::kUnauthenticated, Not(HasSubstr(daemon_.token()))));
  PW_EXPECT_OK(Client::Connect(WithoutRetries(daemon_.tcp_address(), daemon_.token())));
}

TEST_F(BadInputTest, PageOfTooManyModels) {
  v1::ListModelsRequest request;
  request.set_page_size(1001);
  EXPECT_THAT(client_->ListModels(request),
              HasReason(Reason::kInvalidRequest, AllOf(HasSubstr("page_size"), HasSubstr("1000"))));
}

TEST(TooLittleMemoryTest, IsRefusedBeforeAnyTensorIsRead) {
  TestDaemon daemon([](ServerOptions& options) {
    options.memory_limit_bytes = CpuGemm::ScratchBytes(options.threads) + 4096;
  });
  const auto client = daemon.Connect();
  const absl::Status status =
      client->CreateModel(CreateRequest("big", daemon.WriteModel("big"),
                                        v1::BACKWARD_OVERRIDE_NONE))
          .status();
  EXPECT_THAT(status, HasReason(Reason::kMemoryShortfall, HasSubstr("\"big\"")));
  const ErrorDetails details = *DetailsOf(status);
  EXPECT_NE(details.Find("requiredBytes"), nullptr);
  EXPECT_NE(details.Find("availableBytes"), nullptr);
  v1::GetModelRequest get;
  get.set_name("big");
  EXPECT_THAT(client->GetModel(get), HasReason(Reason::kNotFound));
}

TEST(SecondModelOfANameTest, KeepsTheFirst) {
  TestDaemon daemon;
  const auto client = daemon.Connect();
  const std::string path = daemon.WriteModel("m");
  PW_ASSERT_OK(client->CreateModel(CreateRequest("m", path, v1::BACKWARD_OVERRIDE_DEQUANTIZED)));
  const int64_t used_bytes = daemon.server().budget().used_bytes();
  EXPECT_THAT(client->CreateModel(CreateRequest("m", path, v1::BACKWARD_OVERRIDE_NONE)),
              HasReason(Reason::kAlreadyExists, HasSubstr("\"m\"")));
  EXPECT_EQ(daemon.server().budget().used_bytes(), used_bytes);
  v1::GetModelRequest get;
  get.set_name("m");
  PW_ASSERT_OK_AND_ASSIGN(const v1::Model model, client->GetModel(get));
  EXPECT_EQ(model.recipe().backward_override(), v1::BACKWARD_OVERRIDE_DEQUANTIZED);
}

}  // namespace
}  // namespace planewise
