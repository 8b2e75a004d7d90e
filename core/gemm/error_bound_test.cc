#include "core/gemm/error_bound.h"

#include <cmath>

#include "gtest/gtest.h"

namespace planewise {
namespace {

GemmProblem Codes(DType output) {
  GemmProblem problem;
  problem.k = 64;
  problem.a.kind = problem.b.kind = OperandKind::kCodes;
  problem.output = output;
  return problem;
}

TEST(ErrorBoundTest, IsWhatRoundingExplains) {
  const ReferenceElement exact = {.sum = 100.0, .magnitude = 300.0};
  const GemmProblem f32 = Codes(DType::kF32);
  const double sum_error = 64 * 0x1p-23 * 300;
  EXPECT_NEAR(GemmErrorBound(f32, exact, 0), sum_error + 100 * 0x1p-24, 1e-9);
  // One BF16 step at 100 is 0.5; rounding errs by half of it at most.
  const double bf16 = GemmErrorBound(Codes(DType::kBF16), exact, 0);
  EXPECT_GT(bf16, 0.25);
  EXPECT_LT(bf16, 0.5);
}

TEST(ErrorBoundTest, TellsWrongFromRounded) {
  const GemmProblem f32 = Codes(DType::kF32);
  const ReferenceElement exact = {.sum = 1.0, .magnitude = 1.0};
  EXPECT_TRUE(MayBe(f32, exact, 0, 1.0 + 0x1p-18));
  EXPECT_FALSE(MayBe(f32, exact, 0, 1.0 + 0x1p-16));
  EXPECT_FALSE(MayBe(f32, exact, 0.5, 1.0));
  EXPECT_FALSE(MayBe(f32, exact, 0, std::nan("")));
  EXPECT_FALSE(MayBe(f32, exact, 0, INFINITY));
  // Nothing is lost of codes, be they ever so small.
  const ReferenceElement tiny = {.sum = 0x1p-120, .magnitude = 0x1p-120};
  EXPECT_FALSE(MayBe(f32, tiny, 0, 0.0));
  // Results below half of the smallest subnormal round to zero.
  const ReferenceElement least = {.sum = 0x1p-151, .magnitude = 0x1p-151};
  EXPECT_TRUE(MayBe(f32, least, 0, 0.0));
}

TEST(ErrorBoundTest, LetsBf16HardwareDropSubnormalElements) {
  GemmProblem dense = Codes(DType::kF32);
  dense.a.kind = dense.b.kind = OperandKind::kDense;
  const ReferenceElement kept = {.sum = 0x1p-100, .magnitude = 0x1p-100};
  EXPECT_FALSE(MayBe(dense, kept, 0, 0.0));
  const ReferenceElement dropped = {.sum = 0x1p-100, .magnitude = 0x1p-100,
                                    .subnormal = 0x1p-100};
  EXPECT_TRUE(MayBe(dense, dropped, 0, 0.0));
}

TEST(ErrorBoundTest, OverflowsWhereTheOutputTypeDoes) {
  const ReferenceElement large = {.sum = 70000.0, .magnitude = 70000.0};
  EXPECT_TRUE(MayBe(Codes(DType::kF16), large, 0, INFINITY));
  EXPECT_FALSE(MayBe(Codes(DType::kF16), large, 0, -INFINITY));
  EXPECT_FALSE(MayBe(Codes(DType::kBF16), large, 0, INFINITY));
  const ReferenceElement nan = {.sum = std::nan(""), .magnitude = std::nan("")};
  EXPECT_TRUE(MayBe(Codes(DType::kBF16), nan, 0, std::nan("")));
  EXPECT_FALSE(MayBe(Codes(DType::kBF16), nan, 0, 1.0));
}

}  // namespace
}  // namespace planewise
