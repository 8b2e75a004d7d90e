#include "core/layer/linear.h"

#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/gemm/cpu_gemm.h"
#include "core/layer/test_layer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/seed.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr Recipe kNone = {Format::kMxfp8, BackwardOverride::kNone};
constexpr Recipe kHighPrecision = {Format::kMxfp8, BackwardOverride::kHighPrecision};
constexpr Recipe kDequantized = {Format::kMxfp8, BackwardOverride::kDequantized};
constexpr Recipe kUnquantized = {Format::kNone};
constexpr Recipe kRecipes[] = {kNone, kHighPrecision, kDequantized, kUnquantized};

constexpr TestLayerSpec kBothPlanes = {.column = true};
constexpr TestLayerSpec kRowOnly = {.column = false};
constexpr TestLayerSpec kHighPrecisionPrimary = {.format = Format::kNone};

constexpr uint64_t kWeightSeed = 7;  // every layer quantizes the same matrix

LinearMode Training(const Recipe& recipe) {
  return {.recipe = recipe, .save_for_backward = true, .weight_gradient = true};
}

std::vector<uint8_t> BytesOf(const HostBuffer& buffer) {
  const auto* begin = reinterpret_cast<const uint8_t*>(buffer.data());
  return {begin, begin + buffer.size_bytes()};
}

// Everything a saved operand holds.
std::vector<uint8_t> BytesOf(const SavedOperand& saved) {
  std::vector<uint8_t> all;
  const auto append = [&all](const HostBuffer& buffer) {
    const std::vector<uint8_t> bytes = BytesOf(buffer);
    all.insert(all.end(), bytes.begin(), bytes.end());
  };
  if (saved.original) append(*saved.original);
  for (const std::shared_ptr<const Plane>& plane : {saved.row, saved.column}) {
    if (plane == nullptr) continue;
    append(plane->payload);
    append(plane->scales);
  }
  return all;
}

class LinearTest : public testing::Test {
 protected:
  LinearTest() : budget_(MemoryBudget::Create(int64_t{1} << 30)), random_(TestSeed()) {
    absl::StatusOr<std::unique_ptr<CpuGemm>> gemm = CpuGemm::Create(2, *budget_);
    EXPECT_TRUE(gemm.ok()) << gemm.status();
    gemm_ = *std::move(gemm);
    context_ = {gemm_.get(), &VectorQuantizer(), budget_.get()};
  }

  HostedLayer Layer(TestLayerSpec spec) { return MakeTestLayer(kWeightSeed, spec, *budget_); }

  struct Forward {
    TestMatrixBytes y;
    GemmPath path;
    std::shared_ptr<const SavedOperand> saved;
  };
  Forward RunForward(const HostedLayer& layer, const LinearMode& mode, const TestMatrixBytes& x) {
    Forward result;
    result.y = DirtyMatrix(x.dtype, x.rows, layer.weight->shape.out);
    const absl::StatusOr<LinearForwardPlan> plan =
        PlanLinearForward(layer.name, *layer.weight, mode, x.rows, x.dtype);
    EXPECT_TRUE(plan.ok()) << plan.status();
    const absl::StatusOr<LinearForwardOutcome> outcome = RunLinearForward(
        context_, *plan, layer, BufferOf(x, *budget_), result.y.mutable_view());
    EXPECT_TRUE(outcome.ok()) << outcome.status();
    result.path = outcome->path;
    result.saved = outcome->saved;
    return result;
  }

  struct Backward {
    TestMatrixBytes dx;
    TestMatrixBytes dw;
    TestMatrixBytes db;

    bool operator==(const Backward&) const = default;
  };
  Backward RunBackward(const SavedOperand& saved, const TestMatrixBytes& dy) {
    const auto [out, in] = saved.weight->shape;
    const bool has_x = saved.mode.weight_gradient;
    Backward result{DirtyMatrix(dy.dtype, dy.rows, in), DirtyMatrix(DType::kF32, out, in),
                    DirtyMatrix(DType::kF32, 1, out)};
    const absl::StatusOr<LinearBackwardPlan> plan = PlanLinearBackward(
        "layer", saved, {.input = true, .weight = has_x, .bias = saved.has_bias});
    EXPECT_TRUE(plan.ok()) << plan.status();
    const absl::StatusOr<LinearBackwardPlan> done =
        RunLinearBackward(context_, *plan, saved, dy.view(), result.dx.mutable_view(),
                          result.dw.mutable_view(), result.db.mutable_view());
    EXPECT_TRUE(done.ok()) << done.status();
    return result;
  }

  TestMatrixBytes X(int64_t tokens, DType dtype = DType::kBF16) {
    return RandomMatrix(random_, dtype, tokens, 64);
  }

  std::shared_ptr<MemoryBudget> budget_;
  std::mt19937_64 random_;
  std::unique_ptr<CpuGemm> gemm_;
  ComputeContext context_;
};

TEST_F(LinearTest, ForwardBitsDoNotDependOnTheOverrideOrTheColumnPlane) {
  for (const DType dtype : {DType::kBF16, DType::kF32, DType::kF16}) {
    const TestMatrixBytes x = X(50, dtype);
    const TestMatrixBytes y = RunForward(Layer(kBothPlanes), Training(kNone), x).y;
    for (const TestLayerSpec& spec : {kBothPlanes, kRowOnly, kHighPrecisionPrimary}) {
      for (const Recipe& recipe : {kHighPrecision, kDequantized}) {
        EXPECT_EQ(RunForward(Layer(spec), Training(recipe), x).y, y) << recipe;
        EXPECT_EQ(RunForward(Layer(spec), {.recipe = recipe}, x).y, y) << recipe;
      }
    }
    EXPECT_NE(RunForward(Layer(kBothPlanes), Training(kUnquantized), x).y, y);
  }
}

TEST_F(LinearTest, BothOverridesHaveTheSameInputGradientAndNoneAnother) {
  const TestMatrixBytes x = X(50);
  const TestMatrixBytes dy = X(50);
  const auto backward = [&](const TestLayerSpec& spec, const Recipe& recipe) {
    return RunBackward(*RunForward(Layer(spec), Training(recipe), x).saved, dy);
  };
  const Backward high_precision = backward(kBothPlanes, kHighPrecision);
  const Backward dequantized = backward(kBothPlanes, kDequantized);
  const Backward none = backward(kBothPlanes, kNone);
  EXPECT_EQ(high_precision.dx, dequantized.dx);
  EXPECT_NE(high_precision.dw, dequantized.dw);
  EXPECT_NE(none.dx, dequantized.dx);
  // The column plane has no part in an override.
  EXPECT_EQ(backward(kRowOnly, kHighPrecision), high_precision);
  EXPECT_EQ(backward(kRowOnly, kDequantized), dequantized);
}

TEST_F(LinearTest, HighPrecisionReadsAHighPrecisionPrimary) {
  const TestMatrixBytes x = X(33);
  const TestMatrixBytes dy = X(33);
  const HostedLayer layer = Layer(kHighPrecisionPrimary);
  const Backward unquantized =
      RunBackward(*RunForward(layer, Training(kUnquantized), x).saved, dy);
  const Backward high_precision =
      RunBackward(*RunForward(layer, Training(kHighPrecision), x).saved, dy);
  const Backward dequantized =
      RunBackward(*RunForward(layer, Training(kDequantized), x).saved, dy);
  EXPECT_EQ(high_precision, unquantized);
  EXPECT_NE(dequantized.dx, unquantized.dx);
}

struct GuardCase {
  std::string name;
  TestLayerSpec spec;
  Recipe recipe;
  LinearMode mode;
  std::optional<Reason> want;
};

TEST_F(LinearTest, GuardsBeforeAnyCompute) {
  const LinearMode training = Training(kNone);
  const LinearMode inference = {.recipe = kNone};
  const LinearMode frozen = {.recipe = kNone, .save_for_backward = true};
  const LinearMode disabled = {
      .recipe = kNone, .backward_enabled = false, .save_for_backward = true};
  const GuardCase kCases[] = {
      {"both planes allow none", kBothPlanes, kNone, training, {}},
      {"both planes allow high_precision", kBothPlanes, kHighPrecision, training, {}},
      {"both planes allow dequantized", kBothPlanes, kDequantized, training, {}},
      {"both planes allow no recipe", kBothPlanes, kUnquantized, training, {}},
      {"row only refuses none", kRowOnly, kNone, training, Reason::kColumnwiseMissing},
      {"row only refuses none, frozen too", kRowOnly, kNone, frozen, Reason::kColumnwiseMissing},
      {"row only allows inference under none", kRowOnly, kNone, inference, {}},
      {"row only allows high_precision", kRowOnly, kHighPrecision, training, {}},
      {"row only allows dequantized", kRowOnly, kDequantized, training, {}},
      {"row only allows no recipe", kRowOnly, kUnquantized, training, {}},
      {"a high-precision primary allows none", kHighPrecisionPrimary, kNone, training, {}},
      {"backward disabled", kBothPlanes, kDequantized, disabled, Reason::kBackwardDisabled},
      {"recipe of another format", kBothPlanes, {Format::kNvfp4}, training, Reason::kNotSupported},
      {"shape that no block divides",
       {.out = 64, .in = 40, .format = Format::kNone},
       kNone,
       inference,
       Reason::kShapeNotDivisible},
  };
  for (const GuardCase& c : kCases) {
    SCOPED_TRACE(c.name);
    const HostedLayer layer = Layer(c.spec);
    LinearMode mode = c.mode;
    mode.recipe = c.recipe;
    const absl::StatusOr<LinearForwardPlan> plan =
        PlanLinearForward("q_proj", *layer.weight, mode, 8, DType::kBF16);
    if (!c.want) {
      PW_EXPECT_OK(plan);
    } else {
      EXPECT_THAT(plan, HasReason(*c.want));
    }
  }
}

TEST_F(LinearTest, TheRefusalNamesThePlaneItsBytesAndTheWayOut) {
  const HostedLayer layer = Layer(kRowOnly);
  const absl::Status status =
      PlanLinearForward("q_proj", *layer.weight, Training(kNone), 8, DType::kBF16).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status, HasReason(Reason::kColumnwiseMissing,
                                testing::AllOf(HasSubstr("\"q_proj\""), HasSubstr("dequantized"),
                                               HasSubstr("master"))));
  const std::optional<ErrorDetails> details = DetailsOf(status);
  ASSERT_TRUE(details.has_value());
  EXPECT_EQ(*details->Find("tensor"), "layer.weight");
  EXPECT_EQ(*details->Find("requiredBytes"), "4608");  // [64, 64]: 4096 + 4 * 128
}

// The plane is there, but of an older version of the weight.
TEST_F(LinearTest, AStalePlaneIsNotRead) {
  const HostedLayer layer = Layer(kBothPlanes);
  PrimaryWeight weight = *layer.weight;
  auto stale = std::make_shared<Plane>();
  stale->layout = weight.column->layout;
  stale->epoch = WeightVersion{0};
  weight.column = stale;
  EXPECT_THAT(PlanLinearForward("layer", weight, Training(kNone), 8, DType::kBF16),
              HasReason(Reason::kColumnwiseMissing));
  weight.epoch = weight.epoch.Next();
  EXPECT_THAT(PlanLinearForward("layer", weight, Training(kDequantized), 8, DType::kBF16),
              HasReason(Reason::kUninitialized, HasSubstr("row plane")));
}

TEST_F(LinearTest, RefusesOtherActivations) {
  const HostedLayer layer = Layer(kBothPlanes);
  EXPECT_THAT(PlanLinearForward("layer", *layer.weight, Training(kNone), 8, DType::kF64),
              HasReason(Reason::kDtypeUnsupported, HasSubstr("F64")));
  EXPECT_THAT(PlanLinearForward("layer", *layer.weight, Training(kNone), -1, DType::kBF16),
              HasReason(Reason::kShapeMismatch));
}

TEST_F(LinearTest, SavesWhatTheModeReads) {
  struct Case {
    Recipe recipe;
    bool weight_gradient;
    bool save_original_input;
    SavedInput want;
    std::string why;
  };
  const Case kCases[] = {
      {kNone, true, false, SavedInput::kColumnPlane, ""},
      {kNone, true, true, SavedInput::kOriginal, ""},
      {kNone, false, false, SavedInput::kNothing, ""},
      {kNone, false, true, SavedInput::kNothing, "nothing of X is kept"},
      {kHighPrecision, true, false, SavedInput::kOriginal, "forced on"},
      {kHighPrecision, true, true, SavedInput::kOriginal, ""},
      {kHighPrecision, false, false, SavedInput::kNothing, ""},
      {kDequantized, true, false, SavedInput::kRowPlane, ""},
      {kDequantized, true, true, SavedInput::kRowPlane, "forced off"},
      {kDequantized, false, false, SavedInput::kNothing, ""},
      {kUnquantized, true, false, SavedInput::kOriginal, "recipe none"},
  };
  const HostedLayer layer = Layer(kBothPlanes);
  const TestMatrixBytes x = X(50);
  for (const Case& c : kCases) {
    SCOPED_TRACE(absl::StrCat(c.recipe.ToString(), " dW ", c.weight_gradient, " original ",
                              c.save_original_input));
    LinearMode mode = Training(c.recipe);
    mode.weight_gradient = c.weight_gradient;
    mode.save_original_input = c.save_original_input;
    PW_ASSERT_OK_AND_ASSIGN(const LinearForwardPlan plan,
                            PlanLinearForward("layer", *layer.weight, mode, 50, DType::kBF16));
    EXPECT_EQ(plan.save_original_input, c.want == SavedInput::kOriginal);
    EXPECT_THAT(plan.save_original_input_why, HasSubstr(c.why));
    EXPECT_EQ(plan.save_original_input_why.empty(), c.why.empty());

    const Forward forward = RunForward(layer, mode, x);
    EXPECT_EQ(forward.saved->original.has_value(), c.want == SavedInput::kOriginal);
    EXPECT_EQ(forward.saved->row != nullptr, c.want == SavedInput::kRowPlane);
    EXPECT_EQ(forward.saved->column != nullptr, c.want == SavedInput::kColumnPlane);
    if (c.want == SavedInput::kOriginal) {
      EXPECT_EQ(BytesOf(*forward.saved->original), x.bytes);
    }

    // X sent again gives the same operand as the forward.
    PW_ASSERT_OK_AND_ASSIGN(const std::shared_ptr<const SavedOperand> again,
                            SaveOperand(context_, plan, layer, BufferOf(x, *budget_)));
    EXPECT_EQ(BytesOf(*again), BytesOf(*forward.saved));
    EXPECT_EQ(again->size_bytes(), plan.saved_bytes);
  }
}

TEST_F(LinearTest, WithoutBackwardNothingIsSaved) {
  const HostedLayer layer = Layer(kBothPlanes);
  const LinearMode mode = {.recipe = kNone, .weight_gradient = true};
  EXPECT_EQ(RunForward(layer, mode, X(8)).saved, nullptr);
  EXPECT_EQ(budget_->used_bytes(MemoryUse::kSavedOperands), 0);
  PW_ASSERT_OK_AND_ASSIGN(const LinearForwardPlan plan,
                          PlanLinearForward("layer", *layer.weight, mode, 8, DType::kBF16));
  EXPECT_THAT(SaveOperand(context_, plan, layer, BufferOf(X(8), *budget_)),
              HasReason(Reason::kInvalidRequest));
}

TEST_F(LinearTest, AFrozenLayerStillHasInputAndBiasGradients) {
  for (const Recipe& recipe : kRecipes) {
    LinearMode frozen = Training(recipe);
    frozen.weight_gradient = false;
    const TestLayerSpec spec = {.bias = true};
    const TestMatrixBytes x = X(50);
    const TestMatrixBytes dy = X(50);
    const Forward forward = RunForward(Layer(spec), frozen, x);
    EXPECT_THAT(PlanLinearBackward("layer", *forward.saved, {.weight = true}),
                HasReason(Reason::kNotTrainable, HasSubstr("weight_gradient=true")));
    const Backward alone = RunBackward(*forward.saved, dy);
    const Backward trained = RunBackward(*RunForward(Layer(spec), Training(recipe), x).saved, dy);
    EXPECT_EQ(alone.dx, trained.dx);
    EXPECT_EQ(alone.db, trained.db);
  }
}

TEST_F(LinearTest, ABiasGradientNeedsABias) {
  const Forward forward = RunForward(Layer(kBothPlanes), Training(kNone), X(8));
  EXPECT_THAT(PlanLinearBackward("layer", *forward.saved, {.bias = true}),
              HasReason(Reason::kInvalidRequest, HasSubstr("bias")));
}

TEST_F(LinearTest, BackwardChangesNothingThatWasSaved) {
  for (const Recipe& recipe : kRecipes) {
    const HostedLayer layer = Layer(kBothPlanes);
    const std::vector<uint8_t> row = BytesOf(layer.weight->row->payload);
    const Forward forward = RunForward(layer, Training(recipe), X(50));
    const std::vector<uint8_t> before = BytesOf(*forward.saved);
    const TestMatrixBytes dy = X(50);
    const Backward first = RunBackward(*forward.saved, dy);
    EXPECT_EQ(BytesOf(*forward.saved), before);
    EXPECT_EQ(RunBackward(*forward.saved, dy), first);
    EXPECT_EQ(BytesOf(layer.weight->row->payload), row);
  }
}

// Each backward follows the forward it belongs to, whatever ran in between.
TEST_F(LinearTest, SwitchingModesOnOneLayerLeavesNothingBehind) {
  const HostedLayer layer = Layer(kBothPlanes);
  const TestMatrixBytes x = X(50);
  const TestMatrixBytes dy = X(50);
  const Forward none = RunForward(layer, Training(kNone), x);
  const Backward none_alone = RunBackward(*none.saved, dy);
  const Forward dequantized = RunForward(layer, Training(kDequantized), x);
  const Forward none_again = RunForward(layer, Training(kNone), x);
  EXPECT_EQ(dequantized.saved->mode.recipe, kDequantized);
  const Backward of_dequantized = RunBackward(*dequantized.saved, dy);
  EXPECT_EQ(RunBackward(*none_again.saved, dy), none_alone);
  EXPECT_EQ(RunBackward(*none.saved, dy), none_alone);
  EXPECT_NE(of_dequantized.dx, none_alone.dx);
  EXPECT_EQ(RunBackward(*dequantized.saved, dy), of_dequantized);
}

TEST_F(LinearTest, ZeroTokensGiveZeroGradientsInDirtyBuffers) {
  for (const Recipe& recipe : kRecipes) {
    const Forward forward =
        RunForward(Layer({.out = 64, .in = 64, .bias = true}), Training(recipe), X(0));
    EXPECT_THAT(forward.y.bytes, IsEmpty());
    const Backward backward = RunBackward(*forward.saved, X(0));
    EXPECT_THAT(backward.dx.bytes, IsEmpty());
    EXPECT_THAT(backward.dw.bytes, testing::Each(0));
    EXPECT_THAT(backward.db.bytes, testing::Each(0));
  }
}

TEST_F(LinearTest, RefusesMatricesOfAnotherShape) {
  const HostedLayer layer = Layer(kBothPlanes);
  PW_ASSERT_OK_AND_ASSIGN(
      const LinearForwardPlan plan,
      PlanLinearForward("layer", *layer.weight, Training(kNone), 8, DType::kBF16));
  TestMatrixBytes y = DirtyMatrix(DType::kBF16, 8, 64);
  EXPECT_THAT(
      RunLinearForward(context_, plan, layer, BufferOf(X(7), *budget_), y.mutable_view()),
      HasReason(Reason::kShapeMismatch, HasSubstr("896 bytes; required 1024")));
  TestMatrixBytes transposed = DirtyMatrix(DType::kBF16, 64, 8);
  EXPECT_THAT(RunLinearForward(context_, plan, layer, BufferOf(X(8), *budget_),
                               transposed.mutable_view()),
              HasReason(Reason::kShapeMismatch, HasSubstr("Y is [64, 8]")));
  const Forward forward = RunForward(layer, Training(kNone), X(8));
  PW_ASSERT_OK_AND_ASSIGN(const LinearBackwardPlan backward,
                          PlanLinearBackward("layer", *forward.saved, {.input = true}));
  TestMatrixBytes dx = DirtyMatrix(DType::kBF16, 8, 64);
  const TestMatrixBytes dy = X(9);
  EXPECT_THAT(RunLinearBackward(context_, backward, *forward.saved, dy.view(),
                                dx.mutable_view(), {}, {}),
              HasReason(Reason::kShapeMismatch, HasSubstr("dY is [9, 64]")));
}

// An admission of what the plans say suffices; a byte less does not, and then
// nothing is kept.
TEST_F(LinearTest, TakesWhatThePlanSaysAndNoMore) {
  const HostedLayer layer = Layer(kBothPlanes);
  for (const Recipe& recipe : {kNone, kDequantized}) {
    PW_ASSERT_OK_AND_ASSIGN(
        const LinearForwardPlan plan,
        PlanLinearForward("layer", *layer.weight, Training(recipe), 50, DType::kBF16));
    const int64_t needed = plan.workspace_bytes + plan.saved_bytes;
    for (const int64_t missing : {0, 1}) {
      const std::shared_ptr<MemoryBudget> exact = MemoryBudget::Create(needed - missing);
      const ComputeContext context = {gemm_.get(), &VectorQuantizer(), exact.get()};
      TestMatrixBytes y = DirtyMatrix(DType::kBF16, 50, 64);
      const absl::StatusOr<LinearForwardOutcome> outcome =
          RunLinearForward(context, plan, layer, BufferOf(X(50), *budget_), y.mutable_view());
      if (missing == 0) {
        PW_EXPECT_OK(outcome);
      } else {
        EXPECT_THAT(outcome, HasReason(Reason::kMemoryShortfall));
        EXPECT_EQ(exact->used_bytes(), 0);
      }
    }
  }
}

TEST_F(LinearTest, ARowOfYAndOfDxDoesNotDependOnItsNeighbours) {
  for (const Recipe& recipe : kRecipes) {
    const HostedLayer layer = Layer({.out = 96, .in = 64, .bias = true});
    const TestMatrixBytes x = X(130);
    const TestMatrixBytes dy = RandomMatrix(random_, DType::kBF16, 130, 96);
    const Forward together = RunForward(layer, Training(recipe), x);
    const Backward gradients = RunBackward(*together.saved, dy);
    const auto row_of = [](const TestMatrixBytes& matrix, int64_t row) {
      const int64_t bytes = static_cast<int64_t>(matrix.bytes.size()) / matrix.rows;
      return TestMatrixBytes{matrix.dtype, 1, matrix.columns,
                             {matrix.bytes.begin() + row * bytes,
                              matrix.bytes.begin() + (row + 1) * bytes}};
    };
    for (const int64_t row : {0, 1, 31, 63, 64, 100, 129}) {
      const Forward alone = RunForward(layer, Training(recipe), row_of(x, row));
      EXPECT_EQ(alone.y, row_of(together.y, row)) << recipe << " row " << row;
      EXPECT_EQ(RunBackward(*alone.saved, row_of(dy, row)).dx, row_of(gradients.dx, row))
          << recipe << " row " << row;
    }
  }
}

// One row of X spans more than BF16 can: that row takes the wider path and says
// so, its neighbours keep their bits.
TEST_F(LinearTest, ReportsTheWiderPath) {
  const HostedLayer layer = Layer(kBothPlanes);
  TestMatrixBytes x = X(3, DType::kF32);
  const Forward ordinary = RunForward(layer, Training(kNone), x);
  EXPECT_EQ(ordinary.path, GemmPath::kExpanded);
  auto* elements = reinterpret_cast<float*>(x.bytes.data());
  elements[64] = 3e38f;
  elements[64 + 32] = 1e-38f;
  for (int i = 33; i < 64; ++i) elements[64 + i] = 0.0f;
  const Forward wide = RunForward(layer, Training(kNone), x);
  EXPECT_EQ(wide.path, GemmPath::kExpandedFp32);
  const size_t row_bytes = 64 * sizeof(float);
  EXPECT_EQ(std::memcmp(wide.y.bytes.data(), ordinary.y.bytes.data(), row_bytes), 0);
  EXPECT_EQ(std::memcmp(wide.y.bytes.data() + 2 * row_bytes,
                        ordinary.y.bytes.data() + 2 * row_bytes, row_bytes),
            0);
}

}  // namespace
}  // namespace planewise
