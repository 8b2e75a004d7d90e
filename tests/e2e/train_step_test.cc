// One training step against the real daemon: a model from a Hugging Face
// directory, forward and backward over a stream and by unary calls, and what
// each mode promises of the results.
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "clients/cpp/client.h"
#include "core/base/error.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "planewise/v1/session.grpc.pb.h"
#include "proto/status/grpc_status.h"
#include "proto/version/api_version.h"
#include "tests/e2e/test_daemon.h"
#include "tests/testing/hf_model.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int64_t kTokens = 5;

// Random F32 in [-1, 1).
std::string RandomF32(int64_t elements, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string bytes(elements * sizeof(float), '\0');
  for (int64_t i = 0; i < elements; ++i) {
    const float value = static_cast<float>(random() >> 40) / float{1 << 23} - 1.0f;
    std::memcpy(bytes.data() + i * sizeof(float), &value, sizeof(value));
  }
  return bytes;
}

float At(const std::string& bytes, int64_t index) {
  float value;
  std::memcpy(&value, bytes.data() + index * sizeof(float), sizeof(value));
  return value;
}

void SetSpec(std::vector<int64_t> shape, v1::TensorSpec& spec) {
  spec.set_data_type(v1::DATA_TYPE_F32);
  for (const int64_t size : shape) spec.add_shape(size);
}

v1::Forward ForwardRequest(const std::string& model, uint64_t step) {
  v1::Forward forward;
  forward.set_model(model);
  forward.set_layer(kLayer);
  forward.set_step(step);
  SetSpec({kTokens, kLayerIn}, *forward.mutable_input());
  return forward;
}

struct Step {
  std::string y, dx, dw, db;
  v1::ForwardResult forward;
  v1::BackwardResult backward;
};

class TrainStepTest : public testing::Test {
 protected:
  void Host(const std::string& name, v1::BackwardOverride backward_override,
            const std::string& format = "mxfp8") {
    v1::CreateModelRequest request = CreateRequest(name, source_, backward_override);
    request.mutable_recipe()->set_format(format);
    PW_ASSERT_OK(client_->CreateModel(request));
  }

  // Forward, backward with all gradients, end of the step.
  Step Run(const std::string& model) {
    Step step;
    auto session = client_->OpenSession();
    EXPECT_TRUE(session.ok()) << session.status();
    if (!session.ok()) return step;
    v1::Forward forward = ForwardRequest(model, 1);
    forward.set_save_for_backward(true);
    forward.set_weight_gradient(true);
    step.y.resize(kTokens * kLayerOut * sizeof(float));
    auto forwarded = (*session)->Forward(forward, x_, absl::MakeSpan(step.y));
    EXPECT_TRUE(forwarded.ok()) << forwarded.status();
    if (!forwarded.ok()) return step;
    step.forward = *forwarded;

    v1::Backward backward;
    backward.set_handle(step.forward.handle());
    SetSpec({kTokens, kLayerOut}, *backward.mutable_output_gradient());
    backward.set_input_gradient(true);
    backward.set_weight_gradient(true);
    backward.set_bias_gradient(true);
    step.dx.resize(kTokens * kLayerIn * sizeof(float));
    step.dw.resize(kLayerOut * kLayerIn * sizeof(float));
    step.db.resize(kLayerOut * sizeof(float));
    auto done = (*session)->Backward(
        backward, {dy_},
        {absl::MakeSpan(step.dx), absl::MakeSpan(step.dw), absl::MakeSpan(step.db)});
    EXPECT_TRUE(done.ok()) << done.status();
    if (done.ok()) step.backward = *done;
    PW_EXPECT_OK((*session)->EndStep(1));
    return step;
  }

  TestDaemon daemon_;
  std::unique_ptr<Client> client_ = daemon_.Connect();
  const std::string source_ = daemon_.WriteModel("source");
  const std::string x_ = RandomF32(kTokens * kLayerIn, 11);
  const std::string dy_ = RandomF32(kTokens * kLayerOut, 12);
};

TEST_F(TrainStepTest, OverridesShareTheForwardAndTheInputGradient) {
  Host("none", v1::BACKWARD_OVERRIDE_NONE);
  Host("high", v1::BACKWARD_OVERRIDE_HIGH_PRECISION);
  Host("dequantized", v1::BACKWARD_OVERRIDE_DEQUANTIZED);
  const Step none = Run("none");
  const Step high = Run("high");
  const Step dequantized = Run("dequantized");
  EXPECT_EQ(high.y, none.y);
  EXPECT_EQ(dequantized.y, none.y);
  EXPECT_EQ(dequantized.dx, high.dx);
  EXPECT_NE(none.dx, high.dx);
  EXPECT_NE(high.dw, dequantized.dw);
  EXPECT_TRUE(high.forward.save_original_input());
  EXPECT_NE(high.forward.save_original_input_why(), "");
}

// dbias is a plain sum of a column of dY, whatever the recipe.
TEST_F(TrainStepTest, BiasGradientIsTheColumnSum) {
  Host("m", v1::BACKWARD_OVERRIDE_DEQUANTIZED);
  const Step step = Run("m");
  for (int64_t column = 0; column < kLayerOut; ++column) {
    double sum = 0, magnitude = 0;
    for (int64_t row = 0; row < kTokens; ++row) {
      sum += At(dy_, row * kLayerOut + column);
      magnitude += std::abs(At(dy_, row * kLayerOut + column));
    }
    // kTokens additions in F32 round at most that often.
    EXPECT_NEAR(At(step.db, column), sum, kTokens * std::ldexp(magnitude, -23));
  }
}

// X * W^T + bias from the source itself: a weight kept in BF16 is its rounding,
// 2^-9 relative, and X is F32.
TEST_F(TrainStepTest, HighPrecisionForwardIsThatOfTheSource) {
  Host("m", v1::BACKWARD_OVERRIDE_NONE, "none");
  const Step step = Run("m");
  std::vector<ModelTensor> tensors = RandomTensors(kTinyBert, DType::kF32, 1);
  const auto values = [&](const std::string& suffix) {
    const ModelTensor& tensor = FindTensor(tensors, kLayer + suffix);
    return std::string(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
  };
  const std::string weight = values(".weight");
  const std::string bias = values(".bias");
  for (int64_t row = 0; row < kTokens; ++row) {
    for (int64_t out = 0; out < kLayerOut; ++out) {
      double sum = At(bias, out), magnitude = std::abs(sum);
      for (int64_t in = 0; in < kLayerIn; ++in) {
        const double product =
            double{At(x_, row * kLayerIn + in)} * At(weight, out * kLayerIn + in);
        sum += product;
        magnitude += std::abs(product);
      }
      // Roundings of W and bias, and of X where the CPU computes in BF16: 2^-9
      // each; of the sum and the result: kLayerIn + 2 at most, 2^-24 each.
      const double bound =
          magnitude * (std::ldexp(2.001, -9) + (kLayerIn + 2) * std::ldexp(1, -24));
      ASSERT_NEAR(At(step.y, row * kLayerOut + out), sum, bound) << row << ", " << out;
    }
  }
}

TEST_F(TrainStepTest, UnaryCallsGiveTheSameBytes) {
  Host("m", v1::BACKWARD_OVERRIDE_DEQUANTIZED);
  const Step streamed = Run("m");
  const auto stub = v1::Sessions::NewStub(
      grpc::CreateChannel(daemon_.socket_address(), grpc::InsecureChannelCredentials()));
  v1::OpenSession open;
  open.set_client_api_version(std::string(kApiVersion));
  v1::SessionOpened opened;
  grpc::ClientContext open_context;
  PW_ASSERT_OK(StatusFromGrpc(stub->Open(&open_context, open, &opened)));
  v1::ExecuteRequest request;
  request.set_session_id(opened.session_id());
  request.set_resume_token(opened.resume_token());
  request.mutable_operation()->set_id(1);
  *request.mutable_operation()->mutable_forward() = ForwardRequest("m", 1);
  request.set_inputs(x_);
  for (int attempt = 0; attempt < 2; ++attempt) {  // the same id gives the kept result
    v1::ExecuteResponse response;
    grpc::ClientContext context;
    PW_ASSERT_OK(StatusFromGrpc(stub->Execute(&context, request, &response)));
    EXPECT_EQ(response.result().status().code(), 0) << response.result().status().message();
    EXPECT_EQ(response.outputs(), streamed.y);
  }
}

TEST_F(TrainStepTest, UnaryTensorAboveItsLimitNamesTheLimit) {
  Host("m", v1::BACKWARD_OVERRIDE_DEQUANTIZED);
  const auto stub = v1::Sessions::NewStub(
      grpc::CreateChannel(daemon_.socket_address(), grpc::InsecureChannelCredentials()));
  v1::OpenSession open;
  open.set_client_api_version(std::string(kApiVersion));
  v1::SessionOpened opened;
  grpc::ClientContext open_context;
  PW_ASSERT_OK(StatusFromGrpc(stub->Open(&open_context, open, &opened)));
  const int64_t tokens = opened.unary_tensor_bytes_max() / (kLayerIn * 4) + 1;
  v1::ExecuteRequest request;
  request.set_session_id(opened.session_id());
  request.set_resume_token(opened.resume_token());
  request.mutable_operation()->set_id(1);
  v1::Forward& forward = *request.mutable_operation()->mutable_forward();
  forward = ForwardRequest("m", 1);
  forward.mutable_input()->set_shape(0, tokens);
  request.set_inputs(std::string(tokens * kLayerIn * 4, '\0'));
  v1::ExecuteResponse response;
  grpc::ClientContext context;
  EXPECT_THAT(StatusFromGrpc(stub->Execute(&context, request, &response)),
              HasReason(Reason::kLimitExceeded, HasSubstr("unary_tensor_bytes_max")));
}

// Field report 46: a model that was created under an override says what its weights
// lack for the default backward.
TEST_F(TrainStepTest, PlanIsActualAndTheSwitchIsRefusedWithRemedies) {
  Host("m", v1::BACKWARD_OVERRIDE_DEQUANTIZED);
  v1::GetModelRequest get;
  get.set_name("m");
  PW_ASSERT_OK_AND_ASSIGN(const v1::Model model, client_->GetModel(get));
  EXPECT_EQ(model.actual_bytes(), model.planned_bytes());
  EXPECT_GT(model.actual_bytes(), 0);
  for (const v1::LayerDescription& layer : model.layers()) {
    EXPECT_EQ(layer.weight().actual_bytes(), layer.weight().planned_bytes()) << layer.name();
    ASSERT_EQ(layer.weight().planes_size(), 1);
    EXPECT_EQ(layer.weight().planes(0).plane(), v1::PLANE_ROW);
    EXPECT_FALSE(layer.weight().decision().column());
  }

  v1::ValidateModeSwitchRequest validate;
  validate.set_name("m");
  validate.mutable_target()->set_format("mxfp8");
  validate.mutable_target()->set_backward_override(v1::BACKWARD_OVERRIDE_NONE);
  PW_ASSERT_OK_AND_ASSIGN(const v1::ValidateModeSwitchResponse verdict,
                          client_->ValidateModeSwitch(validate));
  EXPECT_EQ(verdict.verdict(), v1::SWITCH_VERDICT_NEEDS_MASTER);
  ASSERT_EQ(verdict.weights_size(), model.layers_size());
  ASSERT_GT(verdict.weights(0).reasons_size(), 0);
  EXPECT_EQ(verdict.weights(0).reasons(0).code(), "COLUMNWISE_MISSING");
  EXPECT_GT(verdict.weights(0).reasons(0).remedies_size(), 0);

  v1::SwitchModeRequest change;
  change.set_name("m");
  *change.mutable_target() = validate.target();
  change.set_fingerprint(verdict.fingerprint());
  const absl::Status refused = client_->SwitchMode(change).status();
  EXPECT_THAT(refused,
              HasReason(Reason::kColumnwiseMissing, HasSubstr(model.layers(0).weight().name())));
  const ErrorDetails details = *DetailsOf(refused);
  // As many weights as the answer's trailers hold, and how many more there are.
  ASSERT_FALSE(details.violations.empty());
  const std::string* omitted = details.Find("violationsOmitted");
  EXPECT_EQ(static_cast<int>(details.violations.size()) +
                (omitted == nullptr ? 0 : std::stoi(*omitted)),
            model.layers_size());
  EXPECT_EQ(details.violations[0].subject, model.layers(0).weight().name());
  EXPECT_THAT(details.violations[0].description, HasSubstr("create the model again from"));
  EXPECT_NE(details.Find("uploadBytes"), nullptr);

  // Between the overrides a row-only weight moves freely.
  validate.mutable_target()->set_backward_override(v1::BACKWARD_OVERRIDE_HIGH_PRECISION);
  PW_ASSERT_OK_AND_ASSIGN(const v1::ValidateModeSwitchResponse free,
                          client_->ValidateModeSwitch(validate));
  EXPECT_EQ(free.verdict(), v1::SWITCH_VERDICT_ALLOWED);
  *change.mutable_target() = validate.target();
  change.set_fingerprint(free.fingerprint());
  PW_ASSERT_OK_AND_ASSIGN(const v1::SwitchModeResponse changed, client_->SwitchMode(change));
  EXPECT_GT(changed.version(), model.version());
}

// Field report 46, the guard: a session may not ask for what the planes cannot give.
TEST_F(TrainStepTest, ForwardThatWillNeedAMissingPlaneIsRefusedBeforeCompute) {
  Host("m", v1::BACKWARD_OVERRIDE_DEQUANTIZED);
  PW_ASSERT_OK_AND_ASSIGN(const auto session, client_->OpenSession());
  v1::Forward forward = ForwardRequest("m", 1);
  forward.set_save_for_backward(true);
  forward.set_backward_override(v1::BACKWARD_OVERRIDE_NONE);
  std::string y(kTokens * kLayerOut * sizeof(float), '\0');
  EXPECT_THAT(session->Forward(forward, x_, absl::MakeSpan(y)),
              HasReason(Reason::kColumnwiseMissing, HasSubstr(kLayer)));
}

// Field report 40.
TEST_F(TrainStepTest, ShapesThatDoNotFitNameWhatIsRequired) {
  Host("m", v1::BACKWARD_OVERRIDE_DEQUANTIZED);
  PW_ASSERT_OK_AND_ASSIGN(const auto session, client_->OpenSession());
  v1::Forward forward = ForwardRequest("m", 1);
  forward.mutable_input()->set_shape(1, 63);
  std::string y(kTokens * kLayerOut * sizeof(float), '\0');
  EXPECT_THAT(session->Forward(forward, x_.substr(0, kTokens * 63 * 4), absl::MakeSpan(y)),
              HasReason(Reason::kShapeMismatch,
                        AllOf(HasSubstr(kLayer), HasSubstr("63"), HasSubstr("64"))));
  forward = ForwardRequest("m", 1);
  forward.set_layer("encoder.layer.9.nothing");
  EXPECT_THAT(session->Forward(forward, x_, absl::MakeSpan(y)),
              HasReason(Reason::kNotFound, HasSubstr("encoder.layer.9.nothing")));
}

}  // namespace
}  // namespace planewise
