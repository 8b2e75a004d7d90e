#include "service/compute/linear_executor.h"

#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "service/compute/fake_linear_compute.h"
#include "tests/testing/integer_model.h"
#include "tests/testing/sim_background_runner.h"
#include "tests/testing/sim_clock.h"
#include "tests/testing/sim_executor.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kTokens = 3;
constexpr int64_t kOut = 4;
constexpr int64_t kIn = 5;

class LinearExecutorTest : public ::testing::Test {
 protected:
  LinearExecutorTest()
      : version_(MakeIntegerVersion(*budget_, "m", 1, {{"l", kOut, kIn}})),
        weights_bytes_(budget_->used_bytes()) {}

  PinnedLayer Layer() const { return {version_, &version_->layers.front()}; }

  HostBuffer Buffer(const std::vector<float>& values) {
    HostBuffer buffer =
        *HostBuffer::Allocate(*budget_, MemoryUse::kTransport,
                              static_cast<int64_t>(values.size() * sizeof(float)), "test");
    std::memcpy(buffer.data(), values.data(), values.size() * sizeof(float));
    return buffer;
  }

  static std::vector<float> Values(const HostBuffer& buffer) {
    std::vector<float> values(static_cast<size_t>(buffer.size_bytes()) / sizeof(float));
    std::memcpy(values.data(), buffer.data(), buffer.size_bytes());
    return values;
  }

  LinearMode Training() const {
    LinearMode mode;
    mode.save_for_backward = true;
    mode.weight_gradient = true;
    return mode;
  }

  absl::StatusOr<ForwardOutput> Forward(const LinearMode& mode, const std::vector<float>& x,
                                        NonFinitePolicy policy = NonFinitePolicy::kFormat) {
    ForwardJob job;
    job.layer = Layer();
    job.plan = *executor_.PlanForward(job.layer, mode, kTokens, DType::kF32);
    job.non_finite = policy;
    job.x = Buffer(x);
    std::optional<absl::StatusOr<ForwardOutput>> output;
    executor_.Forward(std::move(job),
                      [&](absl::StatusOr<ForwardOutput> o) { output = std::move(o); });
    EXPECT_FALSE(output.has_value()) << "answered inside the call";
    runner_.RunUntilIdle();
    return *std::move(output);
  }

  absl::StatusOr<BackwardOutput> Backward(BackwardJob job, const std::vector<float>& dy) {
    job.layer = "l";
    job.tokens = kTokens;
    job.weight = {kOut, kIn};
    job.activation = DType::kF32;
    job.dy = Buffer(dy);
    std::optional<absl::StatusOr<BackwardOutput>> output;
    executor_.Backward(std::move(job),
                       [&](absl::StatusOr<BackwardOutput> o) { output = std::move(o); });
    runner_.RunUntilIdle();
    return *std::move(output);
  }

  SimClock clock_;
  SimExecutor sim_{clock_};
  SimBackgroundRunner runner_{sim_};
  FakeLinearCompute compute_;
  std::shared_ptr<MemoryBudget> budget_ = MemoryBudget::Create(10000);
  LinearExecutor executor_{compute_, runner_, budget_};
  std::shared_ptr<ModelVersion> version_;
  int64_t weights_bytes_;
  const std::vector<float> x_ = IntegerMatrix(kTokens, kIn, 3);
  const std::vector<float> dy_ = IntegerMatrix(kTokens, kOut, 8);
};

TEST_F(LinearExecutorTest, ForwardAndBackwardByHandle) {
  PW_ASSERT_OK_AND_ASSIGN(ForwardOutput forward, Forward(Training(), x_));
  EXPECT_EQ(Values(forward.y), ExpectedForward(version_->layers[0], x_));
  ASSERT_NE(forward.saved, nullptr);

  BackwardJob job;
  job.saved = forward.saved;
  job.wanted = {true, true, true};
  PW_ASSERT_OK_AND_ASSIGN(const BackwardOutput backward, Backward(std::move(job), dy_));
  EXPECT_EQ(Values(backward.dx), ExpectedInputGradient(version_->layers[0], dy_));
  EXPECT_EQ(Values(backward.dw), ExpectedWeightGradient(version_->layers[0], x_, dy_));
  EXPECT_EQ(Values(backward.db), ExpectedBiasGradient(version_->layers[0], dy_));
}

TEST_F(LinearExecutorTest, BackwardWithTheInputSentAgain) {
  BackwardJob job;
  job.resent.emplace();
  job.resent->layer = Layer();
  job.resent->plan = *executor_.PlanForward(Layer(), Training(), kTokens, DType::kF32);
  job.resent->x = Buffer(x_);
  job.wanted = {false, true, false};
  PW_ASSERT_OK_AND_ASSIGN(const BackwardOutput backward, Backward(std::move(job), dy_));
  EXPECT_EQ(Values(backward.dw), ExpectedWeightGradient(version_->layers[0], x_, dy_));
  EXPECT_EQ(backward.dx.size_bytes(), 0);
  EXPECT_EQ(compute_.forwards_run(), 0) << "the forward is not run again";
}

TEST_F(LinearExecutorTest, KeepsNothingButTheResult) {
  {
    PW_ASSERT_OK_AND_ASSIGN(const ForwardOutput forward, Forward(LinearMode(), x_));
    EXPECT_EQ(forward.saved, nullptr);
    EXPECT_EQ(budget_->used_bytes(MemoryUse::kTransport), kTokens * kOut * 4);
    EXPECT_EQ(budget_->used_bytes(MemoryUse::kSavedOperands), 0);
  }
  EXPECT_EQ(budget_->used_bytes(), weights_bytes_);
}

TEST_F(LinearExecutorTest, RejectsNonFiniteInputBeforeItComputes) {
  std::vector<float> x = x_;
  x[7] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(Forward(Training(), x, NonFinitePolicy::kReject),
              HasReason(Reason::kNonFiniteInTensor,
                        HasSubstr("input of layer \"l\": NaN or infinity at index 7 (row 1, "
                                  "column 2)")));
  EXPECT_EQ(compute_.forwards_run(), 0);
  EXPECT_EQ(budget_->used_bytes(), weights_bytes_);
  PW_EXPECT_OK(Forward(Training(), x, NonFinitePolicy::kFormat));

  std::vector<float> dy = dy_;
  dy[2] = std::numeric_limits<float>::infinity();
  PW_ASSERT_OK_AND_ASSIGN(ForwardOutput forward, Forward(Training(), x_));
  BackwardJob job;
  job.saved = forward.saved;
  job.wanted = {true, true, true};
  job.non_finite = NonFinitePolicy::kReject;
  EXPECT_THAT(Backward(std::move(job), dy),
              HasReason(Reason::kNonFiniteInTensor, HasSubstr("output_gradient")));
  EXPECT_EQ(compute_.backwards_run(), 0);
}

TEST_F(LinearExecutorTest, AResultThatDoesNotFitFailsAndLeavesNothing) {
  const Reservation rest = *budget_->Reserve(
      MemoryUse::kTransport,
      budget_->limit_bytes() - budget_->used_bytes() - kTokens * kIn * 4 - kTokens * kOut * 4 + 1,
      "others");
  const int64_t before = budget_->used_bytes();
  EXPECT_THAT(Forward(LinearMode(), x_),
              HasReason(Reason::kMemoryShortfall, HasSubstr("output of layer \"l\"")));
  EXPECT_EQ(budget_->used_bytes(), before);
  EXPECT_EQ(compute_.forwards_run(), 0);
}

TEST_F(LinearExecutorTest, AGradientThatWasNotSavedForIsRefused) {
  LinearMode frozen = Training();
  frozen.weight_gradient = false;
  PW_ASSERT_OK_AND_ASSIGN(ForwardOutput forward, Forward(frozen, x_));
  BackwardJob job;
  job.saved = forward.saved;
  job.wanted = {true, true, false};
  EXPECT_THAT(Backward(std::move(job), dy_), HasReason(Reason::kNotTrainable));
  EXPECT_EQ(compute_.backwards_run(), 0);
}

}  // namespace
}  // namespace planewise
