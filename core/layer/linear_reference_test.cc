// Forward and backward of every mode against a reference in F64 on the stored
// bytes, within the derived bound (core/gemm/error_bound.h); and memory, which
// must be what the plans say.

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/gemm/cpu_gemm.h"
#include "core/gemm/error_bound.h"
#include "core/gemm/reference_gemm.h"
#include "core/layer/linear.h"
#include "core/layer/test_layer.h"
#include "gtest/gtest.h"
#include "tests/testing/seed.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

struct Primary {
  std::string name;
  Format format;
  bool column;
  DType nominal;
};

const Primary kPrimaries[] = {
    {"both planes", Format::kMxfp8, true, DType::kBF16},
    {"row plane", Format::kMxfp8, false, DType::kF32},
    {"BF16 primary", Format::kNone, false, DType::kBF16},
    {"F32 primary", Format::kNone, false, DType::kF32},
};

struct Shape {
  int64_t tokens, in, out;
};
// Transformer Engine's test shapes, flattened, and 0 and 50 tokens.
constexpr Shape kShapes[] = {{1, 64, 64},   {32, 64, 64},  {32, 96, 96},   {32, 64, 128},
                             {32, 128, 64}, {160, 64, 64}, {320, 64, 64},  {480, 64, 96},
                             {160, 128, 64}, {3, 64, 64},  {30, 64, 64},   {30, 96, 96},
                             {0, 64, 96},   {50, 96, 64}};

const Recipe kModes[] = {
    {Format::kMxfp8, BackwardOverride::kNone},
    {Format::kMxfp8, BackwardOverride::kHighPrecision},
    {Format::kMxfp8, BackwardOverride::kDequantized},
    {Format::kMxfp8, BackwardOverride::kNone, Fp8Format::kHybrid},
    {Format::kNone},
};

// A quantized matrix of the reference: planes by the normative quantizer.
QuantizedPlanes Quantize(MatrixView matrix, DType element, MemoryBudget& budget) {
  absl::StatusOr<QuantizedPlanes> planes =
      QuantizeToPlanes(ScalarQuantizer(), budget, MemoryUse::kTransport, matrix,
                       {.format = Format::kMxfp8, .element = element},
                       {.row = true, .column = true}, WeightVersion{}, "reference");
  EXPECT_TRUE(planes.ok()) << planes.status();
  return *std::move(planes);
}

// One operand of the reference.
struct Side {
  OperandFormat format;
  GemmOperand operand;
};

Side Codes(const Plane& plane, Contracted contracted) {
  return {{OperandKind::kCodes, plane.layout.payload_dtype, contracted}, {{}, SpanOf(plane), {}}};
}
Side Values(const Plane& plane, Contracted contracted) {
  return {{OperandKind::kValues, DType::kF8E4M3, contracted}, {{}, SpanOf(plane), {}}};
}
Side Dense(MatrixView matrix, Contracted contracted) {
  return {{OperandKind::kDense, matrix.dtype, contracted}, {matrix, {}, {}}};
}

constexpr Contracted kColumns = Contracted::kColumns;
constexpr Contracted kRows = Contracted::kRows;

class LinearReferenceTest : public testing::Test {
 protected:
  LinearReferenceTest() : budget_(MemoryBudget::Create(int64_t{1} << 30)), random_(TestSeed()) {
    absl::StatusOr<std::unique_ptr<CpuGemm>> gemm = CpuGemm::Create(2, *budget_);
    EXPECT_TRUE(gemm.ok()) << gemm.status();
    gemm_ = *std::move(gemm);
    context_ = {gemm_.get(), &VectorQuantizer(), budget_.get()};
  }

  static void ExpectProduct(const char* what, const Side& a, const Side& b, DType value_dtype,
                            const TestMatrixBytes& actual, int64_t k,
                            const std::vector<double>& bias = {}) {
    GemmProblem problem = {actual.rows, actual.columns, k, a.format, b.format, value_dtype,
                           DType::kF32, actual.dtype};
    const ReferenceOperand ra = ReadReference(a.format, a.operand, value_dtype, actual.rows, k);
    const ReferenceOperand rb = ReadReference(b.format, b.operand, value_dtype, actual.columns, k);
    for (int64_t i = 0; i < actual.rows; ++i) {
      for (int64_t j = 0; j < actual.columns; ++j) {
        const ReferenceElement exact = MultiplyReference(ra, i, rb, j);
        const double offset = bias.empty() ? 0 : bias[static_cast<size_t>(j)];
        const double value =
            ReadElement(actual.dtype, actual.bytes.data(), i * actual.columns + j);
        ASSERT_TRUE(MayBe(problem, exact, offset, value))
            << what << " at [" << i << "," << j << "]: " << value << ", exact "
            << exact.sum + offset;
      }
    }
  }

  static void ExpectColumnSums(const TestMatrixBytes& dy, const TestMatrixBytes& db) {
    for (int64_t j = 0; j < dy.columns; ++j) {
      double sum = 0;
      double magnitude = 0;
      for (int64_t i = 0; i < dy.rows; ++i) {
        const double value = ReadElement(dy.dtype, dy.bytes.data(), i * dy.columns + j);
        sum += value;
        magnitude += std::abs(value);
      }
      ASSERT_LE(std::abs(ReadElement(DType::kF32, db.bytes.data(), j) - sum),
                static_cast<double>(dy.rows) * 0x1p-24 * magnitude);
    }
  }

  void CheckMode(const Primary& primary, const Recipe& recipe, const Shape& shape,
                 DType activation, bool bias, bool save_original);

  std::shared_ptr<MemoryBudget> budget_;
  std::mt19937_64 random_;
  std::unique_ptr<CpuGemm> gemm_;
  ComputeContext context_;
};

void LinearReferenceTest::CheckMode(const Primary& primary, const Recipe& recipe,
                                    const Shape& shape, DType activation, bool bias,
                                    bool save_original) {
  const auto [tokens, in, out] = shape;
  const HostedLayer layer = MakeTestLayer(
      random_(), {out, in, primary.format, primary.column, primary.nominal, bias}, *budget_);
  const PrimaryWeight& weight = *layer.weight;
  const TestMatrixBytes x = RandomMatrix(random_, activation, tokens, in);
  const TestMatrixBytes dy = RandomMatrix(random_, activation, tokens, out, 0.001);
  TestMatrixBytes y = DirtyMatrix(activation, tokens, out);
  TestMatrixBytes dx = DirtyMatrix(activation, tokens, in);
  TestMatrixBytes dw = DirtyMatrix(DType::kF32, out, in);
  TestMatrixBytes db = DirtyMatrix(DType::kF32, 1, out);

  const LinearMode mode = {.recipe = recipe, .save_for_backward = true, .weight_gradient = true,
                           .save_original_input = save_original};
  PW_ASSERT_OK_AND_ASSIGN(const LinearForwardPlan plan,
                          PlanLinearForward(layer.name, weight, mode, tokens, activation));
  HostBuffer x_buffer = BufferOf(x, *budget_);
  budget_->ResetPeak(MemoryUse::kTransient);
  const int64_t idle = budget_->used_bytes(MemoryUse::kTransient);
  PW_ASSERT_OK_AND_ASSIGN(const LinearForwardOutcome outcome,
                          RunLinearForward(context_, plan, layer, std::move(x_buffer),
                                           y.mutable_view()));
  EXPECT_EQ(budget_->peak_bytes(MemoryUse::kTransient) - idle, plan.workspace_bytes);
  EXPECT_EQ(budget_->used_bytes(MemoryUse::kTransient), idle);
  EXPECT_EQ(budget_->used_bytes(MemoryUse::kSavedOperands), plan.saved_bytes);
  EXPECT_EQ(outcome.saved->size_bytes(), plan.saved_bytes);
  EXPECT_EQ(outcome.path, plan.path);

  const LinearGradients wanted = {.input = true, .weight = true, .bias = bias};
  PW_ASSERT_OK_AND_ASSIGN(const LinearBackwardPlan backward,
                          PlanLinearBackward(layer.name, *outcome.saved, wanted));
  budget_->ResetPeak(MemoryUse::kTransient);
  PW_ASSERT_OK_AND_ASSIGN(const LinearBackwardPlan done,
                          RunLinearBackward(context_, backward, *outcome.saved, dy.view(),
                                            dx.mutable_view(), dw.mutable_view(),
                                            db.mutable_view()));
  const int64_t backward_peak = budget_->peak_bytes(MemoryUse::kTransient) - idle;
  const bool bound_only = primary.format == Format::kNone &&
                          recipe.backward_override == BackwardOverride::kDequantized;
  if (bound_only) {
    EXPECT_LE(backward_peak, backward.workspace_bytes);
  } else {
    EXPECT_EQ(backward_peak, backward.workspace_bytes);
  }
  EXPECT_EQ(done.dgrad_path, backward.dgrad_path);
  EXPECT_EQ(done.wgrad_path, backward.wgrad_path);

  // The table of modes, once more, by hand.
  const bool stored = primary.format == Format::kMxfp8;
  const DType gradient =
      recipe.fp8_format == Fp8Format::kHybrid ? DType::kF8E5M2 : DType::kF8E4M3;
  const QuantizedPlanes qx = Quantize(x.view(), DType::kF8E4M3, *budget_);
  const QuantizedPlanes qdy = Quantize(dy.view(), gradient, *budget_);
  QuantizedPlanes made;
  MatrixView original;
  if (!stored) {
    original = {weight.high_precision->payload.data(), weight.nominal, out, in};
    made = Quantize(original, DType::kF8E4M3, *budget_);
  }
  const Plane& w_row = stored ? *weight.row : *made.row;
  std::vector<double> offsets;
  if (bias) {
    for (int64_t j = 0; j < out; ++j) {
      offsets.push_back(
          ReadElement(primary.nominal, layer.bias->high_precision->payload.data(), j));
    }
  }
  const bool quantized_forward = recipe.quantized();
  const bool quantized_backward =
      recipe.quantized() && recipe.backward_override == BackwardOverride::kNone;
  const bool dequantized = recipe.backward_override == BackwardOverride::kDequantized;

  const Side x_forward = quantized_forward ? Codes(*qx.row, kColumns) : Dense(x.view(), kColumns);
  const Side w_forward = quantized_forward ? Codes(w_row, kColumns)
                         : stored          ? Values(w_row, kColumns)
                                           : Dense(original, kColumns);
  ExpectProduct("Y", x_forward, w_forward, activation, y, in, offsets);

  const Side dy_input = quantized_backward ? Codes(*qdy.row, kColumns) : Dense(dy.view(), kColumns);
  const Side w_backward =
      quantized_backward        ? Codes(stored ? *weight.column : *made.column, kRows)
      : stored || dequantized   ? Values(w_row, kRows)
                                : Dense(original, kRows);
  ExpectProduct("dX", dy_input, w_backward, activation, dx, out);

  const Side dy_weight = quantized_backward ? Codes(*qdy.column, kRows) : Dense(dy.view(), kRows);
  const Side x_backward = quantized_backward ? Codes(*qx.column, kRows)
                          : dequantized      ? Values(*qx.row, kRows)
                                             : Dense(x.view(), kRows);
  ExpectProduct("dW", dy_weight, x_backward, activation, dw, tokens);
  if (bias) ExpectColumnSums(dy, db);
}

TEST_F(LinearReferenceTest, EveryModeShapeAndType) {
  for (const Primary& primary : kPrimaries) {
    for (const Recipe& recipe : kModes) {
      const bool needs_column = recipe.quantized() && primary.format == Format::kMxfp8 &&
                                recipe.backward_override == BackwardOverride::kNone;
      if (needs_column && !primary.column) continue;
      for (const Shape& shape : kShapes) {
        for (const DType activation : {DType::kBF16, DType::kF32, DType::kF16}) {
          for (const bool bias : {false, true}) {
            if (!bias && shape.tokens > 100) continue;  // slow, and shows nothing more
            SCOPED_TRACE(absl::StrCat(primary.name, ", ", recipe.ToString(), ", [", shape.tokens,
                                      ",", shape.in, "] to ", shape.out, ", ", Name(activation),
                                      bias ? ", bias" : ""));
            CheckMode(primary, recipe, shape, activation, bias, /*save_original=*/false);
            if (HasFailure()) return;
          }
        }
      }
    }
  }
}

TEST_F(LinearReferenceTest, SavingTheOriginalUnderNoneQuantizesItLater) {
  for (const Shape& shape : {Shape{50, 96, 64}, Shape{3, 64, 64}}) {
    CheckMode(kPrimaries[0], kModes[0], shape, DType::kBF16, true, /*save_original=*/true);
  }
}

// More rows than a block of the GEMM, and a sum of more than one chunk, in each
// of the three GEMMs.
TEST_F(LinearReferenceTest, LargerThanOneBlock) {
  CheckMode(kPrimaries[0], kModes[0], {2200, 32, 64}, DType::kBF16, true, false);
  CheckMode(kPrimaries[0], kModes[2], {2200, 64, 32}, DType::kBF16, true, false);
  CheckMode(kPrimaries[0], kModes[0], {33, 2080, 32}, DType::kBF16, false, false);
  CheckMode(kPrimaries[0], kModes[1], {33, 32, 2080}, DType::kBF16, false, false);
}

}  // namespace
}  // namespace planewise
