// Input that breaks other systems: each gets its code and reason, names the
// object, observed against required, and what to do. Afterwards nothing is left
// of it: no model, no memory, and the daemon works on.
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <thread>
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

  // Asks for a tiny BERT whose file `name` says `text`.
  absl::Status CreateWithFile(const std::string& name, absl::string_view text) {
    const std::string path = daemon_.root() + "/bad";
    std::filesystem::remove_all(path);
    daemon_.WriteModel("bad");
    std::ofstream(path + "/" + name, std::ios::binary) << text;
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
              HasReason(Reason::kInvalidCheckpoint,
                        AllOf(HasSubstr("model.safetensors"), HasSubstr("truncated"),
                              HasSubstr("copy it again"))));
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
                        AllOf(HasSubstr("model-00002-of-00002.safetensors"),
                              HasSubstr("copy the checkpoint here again"))));
}

// Field report 43.
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

// kTinyBert with `key` set to `value`.
std::string ConfigWith(const std::string& key, const std::string& value) {
  std::string config(kTinyBert);
  const size_t begin = config.find("\"" + key + "\"");
  return config.substr(0, begin) + "\"" + key + "\": " + value +
         config.substr(config.find_first_of(",}", begin));
}

TEST_F(BadInputTest, ConfigsThatAreNoConfigs) {
  struct Case {
    const char* name;
    std::string text;
    Reason reason;
    const char* says;
  };
  const Case kCases[] = {
      {"empty", "", Reason::kInvalidCheckpoint, "not JSON"},
      {"no object", "[]", Reason::kInvalidCheckpoint, "not a JSON object"},
      {"deeply nested", "{\"a\":" + std::string(100'000, '['), Reason::kInvalidCheckpoint,
       "nested deeper than 32"},
      {"a key twice", ConfigWith("hidden_size", "64, \"hidden_size\": 96"),
       Reason::kInvalidCheckpoint, "\"hidden_size\" appears twice"},
      {"larger than configs are", std::string(5 << 20, ' ') + std::string(kTinyBert),
       Reason::kInvalidCheckpoint, "bytes exceed"},
      {"larger than is read", std::string(17 << 20, ' '), Reason::kLimitExceeded, "config.json"},
      {"negative size", ConfigWith("hidden_size", "-64"), Reason::kInvalidCheckpoint, "-64"},
      {"smallest number", ConfigWith("vocab_size", "-9223372036854775808"),
       Reason::kInvalidCheckpoint, "-9223372036854775808"},
      {"largest number", ConfigWith("intermediate_size", "18446744073709551615"),
       Reason::kInvalidCheckpoint, "18446744073709551615"},
      {"a size beyond models", ConfigWith("intermediate_size", "4194305"),
       Reason::kInvalidCheckpoint, "4194305"},
      {"no layer", ConfigWith("num_hidden_layers", "0"), Reason::kInvalidCheckpoint, "layers is 0"},
      {"a million layers", ConfigWith("num_hidden_layers", "1000000"),
       Reason::kInvalidCheckpoint, "1000000"},
      {"no head", ConfigWith("num_attention_heads", "0"), Reason::kInvalidCheckpoint, "heads is 0"},
      {"a fraction", ConfigWith("hidden_size", "64.5"), Reason::kInvalidCheckpoint, "64.5"},
      {"unknown architecture", ConfigWith("architectures", "[\"GptModel\"]"),
       Reason::kUnknownArchitecture, "BertModel"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    EXPECT_THAT(CreateWithFile("config.json", c.text),
                HasReason(c.reason, AllOf(HasSubstr("\"bad\""), HasSubstr(c.says))));
  }
}

// A file with this header and 8 bytes of tensor data.
std::string SafetensorsFile(const std::string& header) {
  const uint64_t length = header.size();
  std::string file(reinterpret_cast<const char*>(&length), sizeof(length));
  return file + header + std::string(8, '\0');
}

TEST_F(BadInputTest, HeadersThatLieAboutTheirBytes) {
  const struct {
    const char* name;
    const char* header;
  } kCases[] = {
      {"overlap",
       R"({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
           "b": {"dtype": "F32", "shape": [1], "data_offsets": [2, 6]}})"},
      {"the same bytes",
       R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
           "b": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}})"},
      {"past the end", R"({"a": {"dtype": "F32", "shape": [3], "data_offsets": [0, 12]}})"},
      {"far past the end",
       R"({"a": {"dtype": "F32", "shape": [4611686018427387903],
                 "data_offsets": [0, 18446744073709551612]}})"},
      {"negative", R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [-8, 0]}})"},
      {"backwards", R"({"a": {"dtype": "F32", "shape": [0], "data_offsets": [8, 0]}})"},
      {"another size than the shape",
       R"({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 8]}})"},
      {"a shape that overflows",
       R"({"a": {"dtype": "F32", "shape": [4294967296, 4294967296, 2],
                 "data_offsets": [0, 8]}})"},
      {"bytes of nobody", R"({"a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}})"},
      {"no JSON", "{]"},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.name);
    EXPECT_THAT(CreateWithFile("model.safetensors", SafetensorsFile(c.header)),
                HasReason(Reason::kInvalidCheckpoint,
                          AllOf(HasSubstr("\"bad\""), HasSubstr("model.safetensors"))));
  }
}

TEST_F(BadInputTest, PathsThatAreNoModels) {
  const std::string path = daemon_.root() + "/bad";
  EXPECT_THAT(Create("bad", path), HasReason(Reason::kNotFound, HasSubstr(path)));
  std::filesystem::create_directory(path);
  EXPECT_THAT(Create("bad", path),
              HasReason(Reason::kInvalidCheckpoint,
                        AllOf(HasSubstr(path), HasSubstr("config.json is required"))));
  std::ofstream(path + "/config.json") << kTinyBert;
  EXPECT_THAT(Create("bad", path),
              HasReason(Reason::kInvalidCheckpoint,
                        AllOf(HasSubstr(path), HasSubstr("model.safetensors"))));
  // Opening a pipe would wait for ever for its writer.
  ASSERT_EQ(mkfifo((path + "/model.safetensors").c_str(), 0600), 0);
  EXPECT_THAT(Create("bad", path),
              HasReason(Reason::kInvalidRequest, AllOf(HasSubstr("model.safetensors"),
                                                       HasSubstr("neither a regular file"))));
  EXPECT_THAT(Create("bad", path + "/config.json"), Not(IsOk()));
}

// Field report 4: only what is at fault is blamed.
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

// Field report 40: name, observed and expected shape.
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

TEST_F(BadInputTest, UnknownModelInEveryCall) {
  v1::GetModelRequest get;
  v1::DeleteModelRequest remove;
  v1::SaveModelRequest save;
  v1::VerifyModelRequest verify;
  v1::ReadWeightsRequest read;
  v1::ValidateModeSwitchRequest validate;
  v1::SwitchModeRequest change;
  const auto name = [](auto&... requests) { (requests.set_name("nobody"), ...); };
  name(get, remove, save, verify, read, validate, change);
  read.set_plane(v1::PLANE_ROW);
  validate.mutable_target()->set_format("mxfp8");
  *change.mutable_target() = validate.target();
  class NoSink final : public WeightSink {
    absl::StatusOr<absl::Span<char>> Begin(const v1::ReadTensorHeader&) override {
      return Error(Reason::kInternal, "nothing was asked for");
    }
    absl::Status End(const v1::ReadTensorHeader&) override { return absl::OkStatus(); }
  } sink;
  v1::Forward forward;
  forward.set_model("nobody");
  forward.set_layer(kLayer);
  forward.set_step(1);
  forward.mutable_input()->set_data_type(v1::DATA_TYPE_F32);
  forward.mutable_input()->add_shape(1);
  forward.mutable_input()->add_shape(kLayerIn);
  const std::string x(kLayerIn * sizeof(float), '\0');
  std::string y(kLayerOut * sizeof(float), '\0');
  PW_ASSERT_OK_AND_ASSIGN(const auto session, client_->OpenSession());

  const auto unknown = HasReason(Reason::kNotFound, HasSubstr("\"nobody\""));
  EXPECT_THAT(client_->GetModel(get), unknown);
  EXPECT_THAT(client_->DeleteModel(remove), unknown);
  EXPECT_THAT(client_->SaveModel(save), unknown);
  EXPECT_THAT(client_->VerifyModel(verify), unknown);
  EXPECT_THAT(client_->ReadWeights(read, sink), unknown);
  EXPECT_THAT(client_->ValidateModeSwitch(validate), unknown);
  EXPECT_THAT(client_->SwitchMode(change), unknown);
  EXPECT_THAT(session->Forward(forward, x, absl::MakeSpan(y)), unknown);
}

TEST_F(BadInputTest, UnknownRecipe) {
  v1::CreateModelRequest request = CreateRequest("bad", daemon_.WriteModel("bad"),
                                                 v1::BACKWARD_OVERRIDE_NONE);
  request.mutable_recipe()->set_format("int3");
  EXPECT_THAT(client_->CreateModel(request),
              HasReason(Reason::kUnknownRecipe, AllOf(HasSubstr("\"int3\""), HasSubstr("mxfp8"))));
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
  for (const char* way_out : {"/..", "/../..", "/../../../../../../etc", "/missing/../../etc"}) {
    SCOPED_TRACE(way_out);
    EXPECT_THAT(Create("bad", daemon_.root() + way_out), HasReason(Reason::kPathOutsideRoots));
  }
  EXPECT_THAT(Create("bad", "relative/bad"), HasReason(Reason::kPathOutsideRoots));
}

// The directory is inside, its files lead out.
TEST_F(BadInputTest, FilesOutsideTheRoots) {
  const std::string path = daemon_.WriteModel("bad");
  const std::string elsewhere = std::filesystem::path(daemon_.root()).parent_path() / "elsewhere";
  std::filesystem::rename(path + "/model.safetensors", elsewhere);
  std::filesystem::create_symlink(elsewhere, path + "/model.safetensors");
  EXPECT_THAT(Create("bad", path), HasReason(Reason::kPathOutsideRoots));
  std::filesystem::remove(path + "/model.safetensors");
  std::ofstream(path + "/model.safetensors.index.json")
      << R"({"metadata": {}, "weight_map": {")" << kWeight << R"(": "../../elsewhere"}})";
  EXPECT_THAT(Create("bad", path),
              HasReason(Reason::kInvalidCheckpoint, HasSubstr("../../elsewhere")));
  std::filesystem::remove(elsewhere);
}

// Field report 56: what has no weights yet is refused, it never computes with zeros.
TEST_F(BadInputTest, ModelWithoutWeights) {
  EXPECT_THAT(Create("bad", ""), HasReason(Reason::kInvalidRequest, HasSubstr("source_path")));
  const auto reader = daemon_.Connect();
  PW_ASSERT_OK_AND_ASSIGN(const auto session, reader->OpenSession());
  CallOptions options;
  int asked = 0;
  options.progress = [&](const v1::Progress&) {
    v1::Forward forward;
    forward.set_model("bad");
    forward.set_layer(kLayer);
    forward.set_step(static_cast<uint64_t>(++asked));
    forward.mutable_input()->set_data_type(v1::DATA_TYPE_F32);
    forward.mutable_input()->add_shape(1);
    forward.mutable_input()->add_shape(kLayerIn);
    const std::string x(kLayerIn * sizeof(float), '\0');
    std::string y(kLayerOut * sizeof(float), '\0');
    const std::string zeros = y;
    const absl::Status status = session->Forward(forward, x, absl::MakeSpan(y)).status();
    // The load may have ended meanwhile; then the bias shows that weights are there.
    if (status.ok()) {
      EXPECT_NE(y, zeros);
      return true;
    }
    EXPECT_THAT(status, HasReason(Reason::kModelBusy, HasSubstr("\"bad\"")));
    return true;
  };
  PW_ASSERT_OK(client_->CreateModel(
      CreateRequest("bad", daemon_.WriteModel("bad"), v1::BACKWARD_OVERRIDE_NONE), options));
  EXPECT_GT(asked, 0);
  for (int step = 1; step <= asked; ++step) PW_EXPECT_OK(session->EndStep(step));
  v1::DeleteModelRequest remove;
  remove.set_name("bad");
  PW_EXPECT_OK(client_->DeleteModel(remove));
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

// Of callers that ask at once for one name exactly one gets it.
TEST(SecondModelOfANameTest, OneOfConcurrentCreatesWins) {
  TestDaemon daemon;
  const std::string path = daemon.WriteModel("m");
  constexpr int kCallers = 4;
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < kCallers; ++i) clients.push_back(daemon.Connect());
  const int64_t idle_bytes = daemon.server().budget().used_bytes();
  for (int round = 0; round < 10; ++round) {
    std::vector<absl::Status> outcomes(kCallers);
    std::vector<std::thread> callers;
    for (int i = 0; i < kCallers; ++i) {
      callers.emplace_back([&outcome = outcomes[i], &client = *clients[i], &path] {
        outcome = client.CreateModel(CreateRequest("m", path, v1::BACKWARD_OVERRIDE_NONE)).status();
      });
    }
    for (std::thread& caller : callers) caller.join();
    int winners = 0;
    for (const absl::Status& outcome : outcomes) {
      if (outcome.ok()) {
        ++winners;
      } else {
        EXPECT_THAT(outcome, HasReason(Reason::kAlreadyExists, HasSubstr("\"m\"")));
      }
    }
    EXPECT_EQ(winners, 1);
    v1::GetModelRequest get;
    get.set_name("m");
    PW_ASSERT_OK_AND_ASSIGN(const v1::Model model, clients[0]->GetModel(get));
    EXPECT_EQ(daemon.server().budget().used_bytes() - idle_bytes, model.actual_bytes());
    v1::DeleteModelRequest remove;
    remove.set_name("m");
    PW_ASSERT_OK(clients[0]->DeleteModel(remove));
    EXPECT_EQ(daemon.server().budget().used_bytes(), idle_bytes);
  }
}

}  // namespace
}  // namespace planewise
