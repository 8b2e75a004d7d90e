// Every format through the daemon as a process: load, describe, get, save, verify,
// and all bytes again after kill -9. What the daemon stores is what the scalar
// quantizer makes of the checkpoint.
//
// Not here: what the quantizer must make of it (tests/golden/).

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "clients/cpp/client.h"
#include "core/base/error.h"
#include "core/base/posix_file_system.h"
#include "core/numeric/bfloat16.h"
#include "core/quant/quantizer.h"
#include "core/quant/weight_spec.h"
#include "core/recipe/recipe.h"
#include "core/tensor/memory_budget.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/hf_config_reader.h"
#include "planner/memory_model.h"
#include "planner/tensor_inventory.h"
#include "tests/e2e/collected_weights.h"
#include "tests/e2e/daemon_process.h"
#include "tests/e2e/test_daemon.h"
#include "tests/testing/hf_model.h"
#include "tests/testing/scratch_directory.h"
#include "tests/testing/socket_directory.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

using testing::AllOf;
using testing::HasSubstr;

struct HostedFormat {
  const char* model;
  Format format;
  BlockGeometry geometry;
};

constexpr HostedFormat kFormats[] = {
    {"mxfp8-1d", Format::kMxfp8, BlockGeometry::k1D},
    {"mxfp8-2d", Format::kMxfp8, BlockGeometry::k2D},
    {"nvfp4-1d", Format::kNvfp4, BlockGeometry::k1D},
    {"nvfp4-2d", Format::kNvfp4, BlockGeometry::k2D},
    {"fp8-block-1d", Format::kFp8Block, BlockGeometry::k1D},
    {"fp8-block-2d", Format::kFp8Block, BlockGeometry::k2D},
    {"fp8-current", Format::kFp8Current, BlockGeometry::k1D},
    {"fp8-delayed", Format::kFp8Delayed, BlockGeometry::k1D},
};

constexpr char kWeight[] = "encoder.layer.0.intermediate.dense.weight";

Recipe RecipeOf(const HostedFormat& hosted) {
  Recipe recipe = DefaultRecipe(hosted.format);
  recipe.weight_geometry = hosted.geometry;
  return recipe;
}

template <typename Request>
Request Named(const std::string& model) {
  Request request;
  request.set_name(model);
  return request;
}

class FormatRoundTripTest : public testing::Test {
 protected:
  FormatRoundTripTest() : tensors_(RandomTensors(kTinyBert, DType::kF32, 7)) {
    PW_EXPECT_OK(WriteHfModel(PosixFileSystem(), ModelPath(), kTinyBert, tensors_));
  }

  std::string ModelPath() const { return directory_.path() + "/model"; }

  std::unique_ptr<DaemonProcess> Start() const {
    return std::make_unique<DaemonProcess>(std::vector<std::string>{
        "--listen", sockets_.Address(), "--store", directory_.path() + "/store", "--root",
        directory_.path(), "--threads", "1", "--memory-limit", "1GiB", "--drain-grace", "0s"});
  }

  std::unique_ptr<Client> Connect() const {
    auto client = Client::Connect(WithoutRetries(sockets_.Address()));
    EXPECT_TRUE(client.ok()) << client.status();
    return client.ok() ? *std::move(client) : nullptr;
  }

  absl::StatusOr<v1::Model> Load(Client& client, const HostedFormat& hosted) const {
    v1::CreateModelRequest request =
        CreateRequest(hosted.model, ModelPath(), v1::BACKWARD_OVERRIDE_NONE);
    request.mutable_recipe()->set_format(std::string(Name(hosted.format)));
    if (HasField(hosted.format, RecipeField::kWeightGeometry)) {
      request.mutable_recipe()->set_weight_block_dim(hosted.geometry == BlockGeometry::k1D ? 1 : 2);
    }
    return client.CreateModel(request);
  }

  // What the daemon stores of the weight kWeight, by "plane/part", without names.
  static std::map<std::string, std::string> ReadStored(Client& client, const std::string& model) {
    CollectedWeights sink;
    auto request = Named<v1::ReadWeightsRequest>(model);
    request.add_weights(kWeight);
    for (const v1::Plane plane : {v1::PLANE_ROW, v1::PLANE_COLUMN}) {
      request.set_plane(plane);
      PW_EXPECT_OK(client.ReadWeights(request, sink));
    }
    return sink.parts;
  }

  // The weight rounded to BF16, as a load rounds it.
  std::vector<uint16_t> NominalWeight() {
    const ModelTensor& tensor = FindTensor(tensors_, kWeight);
    std::vector<float> values(tensor.bytes.size() / sizeof(float));
    std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
    std::vector<uint16_t> nominal;
    for (const float value : values) nominal.push_back(BFloat16::FromFloat(value).bits);
    return nominal;
  }

  // The same bytes from the scalar quantizer.
  std::map<std::string, std::string> Quantized(const HostedFormat& hosted) {
    const std::vector<uint16_t> nominal = NominalWeight();
    const MatrixView matrix{nominal.data(), DType::kBF16, kLayerOut, kLayerIn};
    const absl::StatusOr<QuantizeSpec> spec =
        NewWeightSpec(ScalarQuantizer(), RecipeOf(hosted), matrix);
    PW_EXPECT_OK(spec);
    const absl::StatusOr<QuantizedPlanes> planes =
        QuantizeToPlanes(ScalarQuantizer(), *budget_, MemoryUse::kWeights, matrix, *spec,
                         {true, true}, WeightVersion(1), kWeight);
    PW_EXPECT_OK(planes);
    std::map<std::string, std::string> parts;
    const auto add = [&parts](const char* plane, const char* part, const HostBuffer& bytes) {
      if (bytes.size_bytes() == 0) return;
      parts[absl::StrCat(kWeight, "/PLANE_", plane, "/PLANE_PART_", part)] =
          std::string(reinterpret_cast<const char*>(bytes.data()),
                      static_cast<size_t>(bytes.size_bytes()));
    };
    const Plane& row = *planes->row;
    const Plane& column = *planes->column;
    add("ROW", "PAYLOAD", row.payload);
    add("ROW", "SCALES", row.scales);
    add("ROW", "STATE", row.state);
    add("COLUMN", "PAYLOAD", column.layout.shares_row_payload ? row.payload : column.payload);
    add("COLUMN", "SCALES", column.layout.shares_row_scales ? row.scales : column.scales);
    add("COLUMN", "STATE", column.state);
    return parts;
  }

  const std::shared_ptr<MemoryBudget> budget_ = MemoryBudget::Create(1 << 26);
  SocketDirectory sockets_;
  ScratchDirectory directory_;
  std::vector<ModelTensor> tensors_;
};

TEST_F(FormatRoundTripTest, BytesAreTheQuantizersFromLoadToRestart) {
  std::map<std::string, std::map<std::string, std::string>> bytes;
  {
    const auto daemon = Start();
    const auto client = Connect();
    for (const HostedFormat& hosted : kFormats) {
      SCOPED_TRACE(hosted.model);
      PW_ASSERT_OK(Load(*client, hosted));
      bytes[hosted.model] = ReadStored(*client, hosted.model);
      EXPECT_EQ(bytes[hosted.model], Quantized(hosted));
      PW_ASSERT_OK_AND_ASSIGN(const v1::SaveResult saved,
                              client->SaveModel(Named<v1::SaveModelRequest>(hosted.model)));
      EXPECT_TRUE(saved.written());
      PW_ASSERT_OK_AND_ASSIGN(const v1::VerifyResult verified,
                              client->VerifyModel(Named<v1::VerifyModelRequest>(hosted.model)));
      EXPECT_TRUE(verified.ok());
    }
    daemon->Kill();
  }
  const auto daemon = Start();
  const auto client = Connect();
  for (const HostedFormat& hosted : kFormats) {
    SCOPED_TRACE(hosted.model);
    EXPECT_EQ(ReadStored(*client, hosted.model), bytes[hosted.model]);
    PW_ASSERT_OK_AND_ASSIGN(const v1::VerifyResult verified,
                            client->VerifyModel(Named<v1::VerifyModelRequest>(hosted.model)));
    EXPECT_TRUE(verified.ok());
  }
}

TEST_F(FormatRoundTripTest, DescribeSaysThePlannedBytes) {
  const absl::StatusOr<ModelConfig> config = ReadHfConfig(kTinyBert);
  PW_ASSERT_OK(config);
  const TensorInventory inventory = *BuildInventory(*config);
  const auto daemon = Start();
  const auto client = Connect();
  for (const HostedFormat& hosted : kFormats) {
    SCOPED_TRACE(hosted.model);
    PlanOptions options;
    options.recipe = RecipeOf(hosted);
    PW_ASSERT_OK_AND_ASSIGN(const ModelPlan plan, PlanModel(inventory, options));
    PW_ASSERT_OK_AND_ASSIGN(const v1::Model model, Load(*client, hosted));
    EXPECT_EQ(model.planned_bytes(), plan.totals.persistent_bytes);
    EXPECT_EQ(model.actual_bytes(), plan.totals.persistent_bytes);
    EXPECT_EQ(model.recipe().format(), Name(hosted.format));
    EXPECT_EQ(model.recipe().fingerprint(), absl::StrCat(absl::Hex(options.recipe.Fingerprint(),
                                                                   absl::kZeroPad16)));
  }
}

TEST_F(FormatRoundTripTest, DequantizedValuesAreTheQuantizers) {
  const std::vector<uint16_t> nominal = NominalWeight();
  const MatrixView matrix{nominal.data(), DType::kBF16, kLayerOut, kLayerIn};
  const auto daemon = Start();
  const auto client = Connect();
  for (const HostedFormat& hosted : kFormats) {
    SCOPED_TRACE(hosted.model);
    PW_ASSERT_OK(Load(*client, hosted));
    PW_ASSERT_OK_AND_ASSIGN(const QuantizeSpec spec,
                            NewWeightSpec(ScalarQuantizer(), RecipeOf(hosted), matrix));
    PW_ASSERT_OK_AND_ASSIGN(
        const QuantizedPlanes planes,
        QuantizeToPlanes(ScalarQuantizer(), *budget_, MemoryUse::kWeights, matrix, spec,
                         {true, false}, WeightVersion(1), kWeight));
    std::string want(nominal.size() * sizeof(float), '\0');
    const MutableMatrixView values{want.data(), DType::kF32, kLayerOut, kLayerIn};
    PW_ASSERT_OK(ScalarQuantizer().Dequantize(SpanOf(*planes.row), values, AllRows(values)));

    CollectedWeights sink;
    auto request = Named<v1::ReadWeightsRequest>(hosted.model);
    request.add_weights(kWeight);
    request.set_dequantize_to(v1::DATA_TYPE_F32);
    PW_ASSERT_OK(client->ReadWeights(request, sink));
    ASSERT_EQ(sink.parts.size(), 1u);
    EXPECT_TRUE(sink.parts.begin()->second == want);
  }
}

// Hosted, and not yet multiplied: said at the first forward, in words.
TEST_F(FormatRoundTripTest, FormatsThatAreOnlyHostedRefuseToCompute) {
  const auto daemon = Start();
  const auto client = Connect();
  PW_ASSERT_OK_AND_ASSIGN(const auto session, client->OpenSession());
  const std::string x(kLayerIn * sizeof(float), '\0');
  std::string y(kLayerOut * sizeof(float), '\0');
  uint64_t step = 0;
  for (const HostedFormat& hosted : kFormats) {
    SCOPED_TRACE(hosted.model);
    PW_ASSERT_OK(Load(*client, hosted));
    if (hosted.format == Format::kMxfp8 && hosted.geometry == BlockGeometry::k1D) continue;
    v1::Forward forward;
    forward.set_model(hosted.model);
    forward.set_layer(kLayer);
    forward.set_step(++step);
    forward.mutable_input()->set_data_type(v1::DATA_TYPE_F32);
    forward.mutable_input()->add_shape(1);
    forward.mutable_input()->add_shape(kLayerIn);
    EXPECT_THAT(session->Forward(forward, x, absl::MakeSpan(y)),
                HasReason(Reason::kNotSupported,
                          AllOf(HasSubstr(std::string(Name(hosted.format))),
                                HasSubstr("is hosted, but"), HasSubstr("recipe mxfp8"))));
  }
}

}  // namespace
}  // namespace planewise
