#include "core/gemm/cpu_gemm.h"

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "core/gemm/error_bound.h"
#include "core/gemm/reference_gemm.h"
#include "core/gemm/test_operand.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/seed.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

using testing::HasSubstr;

constexpr DType kE4M3 = DType::kF8E4M3;
constexpr DType kE5M2 = DType::kF8E5M2;
constexpr ExponentRange kOrdinary = {112, 124};

// What products of codes and of BF16 values are computed in.
DType Bf16IfTheCpuCan() { return CpuMultipliesBf16() ? DType::kBF16 : DType::kF32; }

// An operand and how the product reads it.
struct Stored {
  TestOperand data;
  OperandFormat format;
};

Stored Dense(std::mt19937_64& random, DType dtype, Contracted contracted, int64_t outer,
             int64_t k) {
  const bool along_columns = contracted == Contracted::kColumns;
  TestOperand data = TestOperand::Dense(random, dtype, along_columns ? outer : k,
                                        along_columns ? k : outer);
  const OperandFormat format = data.Format(OperandKind::kDense, contracted);
  return {std::move(data), format};
}

Stored Codes(std::mt19937_64& random, DType element, Contracted contracted, int64_t outer,
             int64_t k, ExponentRange exponents) {
  const bool along_columns = contracted == Contracted::kColumns;
  TestOperand data = TestOperand::Plane(
      random, along_columns ? PlaneKind::kRow : PlaneKind::kColumn, element,
      along_columns ? outer : k, along_columns ? k : outer, exponents);
  const OperandFormat format = data.Format(OperandKind::kCodes, contracted);
  return {std::move(data), format};
}

Stored Values(std::mt19937_64& random, Contracted contracted, int64_t outer, int64_t k,
              ExponentRange exponents) {
  const bool along_columns = contracted == Contracted::kColumns;
  TestOperand data = TestOperand::Plane(random, PlaneKind::kRow, kE4M3,
                                        along_columns ? outer : k, along_columns ? k : outer,
                                        exponents);
  const OperandFormat format = data.Format(OperandKind::kValues, contracted);
  return {std::move(data), format};
}

class CpuGemmTest : public testing::Test {
 protected:
  CpuGemmTest() : budget_(MemoryBudget::Create(int64_t{1} << 30)), random_(TestSeed()) {
    absl::StatusOr<std::unique_ptr<CpuGemm>> gemm = CpuGemm::Create(2, *budget_);
    EXPECT_TRUE(gemm.ok()) << gemm.status();
    gemm_ = *std::move(gemm);
  }

  static MatrixView ViewOf(const std::vector<float>& bias) {
    if (bias.empty()) return {};
    return {bias.data(), DType::kF32, 1, static_cast<int64_t>(bias.size())};
  }

  struct Result {
    GemmPath path;
    std::vector<uint8_t> bytes;
  };

  Result Run(const GemmProblem& problem, const TestOperand& a, const TestOperand& b,
             const std::vector<float>& bias = {}) {
    const int64_t element_bytes = problem.output == DType::kF32 ? 4 : 2;
    std::vector<uint8_t> c(static_cast<size_t>(problem.m * problem.n * element_bytes), 0xA5);
    const absl::StatusOr<GemmPath> path =
        gemm_->Run(problem, a.operand(), b.operand(), ViewOf(bias),
                   {c.data(), problem.output, problem.m, problem.n}, *budget_);
    EXPECT_TRUE(path.ok()) << problem << ": " << path.status();
    return {path.value_or(GemmPath::kNative), std::move(c)};
  }

  // Runs the problem and holds every element to the reference.
  GemmPath Check(const GemmProblem& problem, const TestOperand& a, const TestOperand& b,
                 const std::vector<float>& bias = {}) {
    const Result result = Run(problem, a, b, bias);
    const ReferenceOperand reference_a =
        ReadReference(problem.a, a.operand(), problem.value_dtype, problem.m, problem.k);
    const ReferenceOperand reference_b =
        ReadReference(problem.b, b.operand(), problem.value_dtype, problem.n, problem.k);
    for (int64_t i = 0; i < problem.m; ++i) {
      for (int64_t j = 0; j < problem.n; ++j) {
        const ReferenceElement exact = MultiplyReference(reference_a, i, reference_b, j);
        const double offset = bias.empty() ? 0 : bias[static_cast<size_t>(j)];
        const double actual =
            ReadElement(problem.output, result.bytes.data(), i * problem.n + j);
        if (MayBe(problem, exact, offset, actual)) continue;
        ADD_FAILURE() << problem << " at [" << i << "," << j << "]: " << actual << ", exact "
                      << exact.sum + offset << ", bound "
                      << GemmErrorBound(problem, exact, offset);
        return result.path;
      }
    }
    return result.path;
  }

  std::vector<float> Bias(int64_t n) {
    std::vector<float> bias(static_cast<size_t>(n));
    for (float& value : bias) value = static_cast<float>(random_() % 4096) / 512.0f - 4.0f;
    return bias;
  }

  std::shared_ptr<MemoryBudget> budget_;
  std::mt19937_64 random_;
  std::unique_ptr<CpuGemm> gemm_;
};

struct Size {
  int64_t m, n, k;
};
// Panels, tiles and chunks (64, 64, 2048) met exactly, missed by little, and
// far from full.
constexpr Size kSizes[] = {{1, 32, 32},   {3, 96, 64},    {50, 64, 96},  {64, 128, 64},
                           {65, 160, 32}, {130, 96, 128}, {2, 32, 2080}, {33, 64, 4096}};

TEST_F(CpuGemmTest, MultipliesCodes) {
  for (const Size& size : kSizes) {
    for (const DType compute : {Bf16IfTheCpuCan(), DType::kF32}) {
      for (const Contracted contracted : {Contracted::kColumns, Contracted::kRows}) {
        // The outer dimension of column planes is a stored row of blocks too.
        const int64_t m = contracted == Contracted::kRows ? (size.m + 31) / 32 * 32 : size.m;
        const Stored a = Codes(random_, size.m % 2 == 0 ? kE5M2 : kE4M3, contracted, m, size.k,
                               kOrdinary);
        const Stored b = Codes(random_, kE4M3, contracted, size.n, size.k, kOrdinary);
        const GemmProblem problem = {m, size.n, size.k, a.format, b.format, DType::kBF16,
                                     compute, DType::kF32};
        EXPECT_EQ(Check(problem, a.data, b.data), GemmPath::kExpanded);
      }
    }
  }
}

// dgrad under none: a row plane of dY with a column plane of W. wgrad with a
// token count that is no multiple of 32: the last block of a column plane is
// short.
TEST_F(CpuGemmTest, MultipliesPlanesOfEitherKind) {
  const Stored dy = Codes(random_, kE5M2, Contracted::kColumns, 50, 96, kOrdinary);
  const Stored w = Codes(random_, kE4M3, Contracted::kRows, 64, 96, kOrdinary);
  Check({50, 64, 96, dy.format, w.format, DType::kBF16, Bf16IfTheCpuCan(), DType::kBF16},
        dy.data, w.data);
  for (const int64_t tokens : {1, 3, 31, 33, 50, 2050}) {
    const Stored dy_columns = Codes(random_, kE5M2, Contracted::kRows, 96, tokens, kOrdinary);
    const Stored x_columns = Codes(random_, kE4M3, Contracted::kRows, 64, tokens, kOrdinary);
    Check({96, 64, tokens, dy_columns.format, x_columns.format, DType::kBF16, Bf16IfTheCpuCan(),
           DType::kF32},
          dy_columns.data, x_columns.data);
  }
}

TEST_F(CpuGemmTest, MultipliesDenseMatrices) {
  constexpr DType kTypes[] = {DType::kF32, DType::kBF16, DType::kF16};
  for (const Size& size : {Size{3, 96, 64}, Size{50, 65, 33}, Size{65, 30, 2049}}) {
    for (const DType value : kTypes) {
      for (const DType stored_b : kTypes) {
        for (const Contracted by_a : {Contracted::kColumns, Contracted::kRows}) {
          for (const Contracted by_b : {Contracted::kColumns, Contracted::kRows}) {
            const Stored a = Dense(random_, value, by_a, size.m, size.k);
            const Stored b = Dense(random_, stored_b, by_b, size.n, size.k);
            const DType compute = value == DType::kBF16 ? Bf16IfTheCpuCan() : DType::kF32;
            const GemmProblem problem = {size.m, size.n,  size.k,  a.format,
                                         b.format, value, compute, value};
            EXPECT_EQ(Check(problem, a.data, b.data, Bias(size.n)), GemmPath::kHighPrecision);
          }
        }
      }
    }
  }
}

TEST_F(CpuGemmTest, MultipliesDequantizedValues) {
  constexpr ExponentRange kRanges[] = {kOrdinary, {0, 20}, {100, 140}, {220, 236}};
  for (const ExponentRange& range : kRanges) {
    for (const DType value : {DType::kF32, DType::kBF16, DType::kF16}) {
      for (const Contracted contracted : {Contracted::kColumns, Contracted::kRows}) {
        const Stored a = Dense(random_, value, Contracted::kColumns, 50, 96);
        const Stored b = Values(random_, contracted, 64, 96, range);
        const bool bf16 = value == DType::kBF16 && range == kOrdinary;
        Check({50, 64, 96, a.format, b.format, value, bf16 ? Bf16IfTheCpuCan() : DType::kF32,
               DType::kF32},
              a.data, b.data);
      }
    }
  }
}

TEST_F(CpuGemmTest, RefusesValuesThatBf16WouldChange) {
  const Stored a = Dense(random_, DType::kBF16, Contracted::kColumns, 1, 32);
  const Stored b = Values(random_, Contracted::kColumns, 32, 32, {9, 9});
  const GemmProblem problem = {1, 32, 32, a.format, b.format, DType::kBF16, DType::kBF16,
                               DType::kBF16};
  uint16_t c[32] = {};
  EXPECT_THAT(gemm_->Run(problem, a.data.operand(), b.data.operand(), MatrixView(),
                         {c, DType::kBF16, 1, 32}, *budget_),
              HasReason(Reason::kInvalidRequest, HasSubstr("compute in F32")));
}

// The edges of BF16's range: every result within the bound, whatever the path.
TEST_F(CpuGemmTest, ExpandsCodesAtTheEdgesOfBf16) {
  struct Edge {
    ExponentRange a;
    ExponentRange b;
    GemmPath want;
  };
  const Edge kEdges[] = {
      {{2, 2}, kOrdinary, GemmPath::kExpanded},      {{3, 3}, kOrdinary, GemmPath::kExpanded},
      {{9, 9}, kOrdinary, GemmPath::kExpanded},      {{10, 10}, kOrdinary, GemmPath::kExpanded},
      {{246, 246}, {20, 30}, GemmPath::kExpanded},   {{247, 247}, {20, 30}, GemmPath::kExpanded},
      {{254, 254}, {0, 8}, GemmPath::kExpanded},     {{0, 0}, {250, 254}, GemmPath::kExpanded},
      {{2, 130}, {100, 130}, GemmPath::kExpanded},   {{9, 200}, kOrdinary, GemmPath::kExpanded},
      {kOrdinary, {2, 3}, GemmPath::kExpanded},      {kOrdinary, {9, 130}, GemmPath::kExpanded},
      {{0, 120}, {0, 120}, GemmPath::kExpandedFp32}, {{2, 254}, {2, 9}, GemmPath::kExpandedFp32},
      {kOrdinary, {0, 254}, GemmPath::kExpandedFp32},
  };
  for (const Edge& edge : kEdges) {
    for (const Contracted contracted : {Contracted::kColumns, Contracted::kRows}) {
      const Stored a = Codes(random_, kE4M3, contracted, 96, 256, edge.a);
      const Stored b = Codes(random_, kE4M3, contracted, 64, 256, edge.b);
      const GemmProblem problem = {96,           64,       256, a.format, b.format, DType::kBF16,
                                   Bf16IfTheCpuCan(), DType::kF32};
      EXPECT_EQ(Check(problem, a.data, b.data), edge.want)
          << "a " << edge.a.min << " to " << edge.a.max << ", b " << edge.b.min << " to "
          << edge.b.max;
    }
  }
}

TEST_F(CpuGemmTest, KeepsNan) {
  for (const bool scale : {false, true}) {
    Stored a = Codes(random_, kE4M3, Contracted::kColumns, 3, 64, kOrdinary);
    Stored b = Codes(random_, kE4M3, Contracted::kColumns, 32, 64, kOrdinary);
    if (scale) {
      a.data.Scale(1, 1) = 255;
      a.data.Code(1, 40) = 0x38;
    } else {
      a.data.Code(1, 40) = 0x7F;
    }
    a.data.UpdateExponents();
    const GemmProblem problem = {3,        32,       64,           a.format,
                                 b.format, DType::kBF16, Bf16IfTheCpuCan(), DType::kBF16};
    const Result result = Run(problem, a.data, b.data);
    for (int64_t i = 0; i < 3 * 32; ++i) {
      EXPECT_EQ(std::isnan(ReadElement(DType::kBF16, result.bytes.data(), i)), i / 32 == 1);
    }
  }
}

TEST_F(CpuGemmTest, AnEmptySumIsTheBias) {
  const Stored a = Codes(random_, kE4M3, Contracted::kRows, 64, 0, kOrdinary);
  const Stored b = Codes(random_, kE4M3, Contracted::kRows, 96, 0, kOrdinary);
  const GemmProblem problem = {64, 96, 0, a.format, b.format, DType::kBF16, DType::kBF16,
                               DType::kF32};
  EXPECT_EQ(Run(problem, a.data, b.data).bytes, std::vector<uint8_t>(64 * 96 * 4, 0));
  Check(problem, a.data, b.data, Bias(96));
}

TEST_F(CpuGemmTest, NoRowsIsNoWork) {
  const Stored a = Codes(random_, kE4M3, Contracted::kColumns, 0, 64, kOrdinary);
  const Stored b = Codes(random_, kE4M3, Contracted::kColumns, 96, 64, kOrdinary);
  const GemmProblem problem = {0, 96, 64, a.format, b.format, DType::kBF16, DType::kBF16,
                               DType::kF32};
  EXPECT_EQ(CpuGemm::WorkspaceBytes(problem), 0);
  EXPECT_EQ(Run(problem, a.data, b.data).path, GemmPath::kExpanded);
}

TEST_F(CpuGemmTest, RefusesOperandsThatDoNotFit) {
  const Stored a = Codes(random_, kE4M3, Contracted::kColumns, 4, 64, kOrdinary);
  const Stored b = Codes(random_, kE4M3, Contracted::kColumns, 32, 64, kOrdinary);
  const GemmProblem problem = {4, 32, 64, a.format, b.format, DType::kBF16, Bf16IfTheCpuCan(),
                               DType::kF32};
  std::vector<float> c(4 * 32, 7.0f);
  const MutableMatrixView view = {c.data(), DType::kF32, 4, 32};
  EXPECT_THAT(gemm_->Run(problem, a.data.operand(), a.data.operand(), MatrixView(), view, *budget_),
              HasReason(Reason::kShapeMismatch, HasSubstr("operand B")));
  EXPECT_THAT(gemm_->Run(problem, a.data.operand(), b.data.operand(), MatrixView(),
                         {c.data(), DType::kF32, 32, 4}, *budget_),
              HasReason(Reason::kShapeMismatch, HasSubstr("C is [32,4]")));
  const std::shared_ptr<MemoryBudget> small = MemoryBudget::Create(100);
  EXPECT_THAT(gemm_->Run(problem, a.data.operand(), b.data.operand(), MatrixView(), view, *small),
              HasReason(Reason::kMemoryShortfall));
  EXPECT_EQ(c, std::vector<float>(4 * 32, 7.0f));
}

TEST_F(CpuGemmTest, TakesTheWorkspaceItAnnounces) {
  EXPECT_EQ(budget_->used_bytes(MemoryUse::kTransient), CpuGemm::ScratchBytes(2));
  for (const Size& size : {Size{1, 64, 64}, Size{70, 64, 96}, Size{2100, 32, 32}}) {
    const Stored a = Codes(random_, kE4M3, Contracted::kColumns, size.m, size.k, kOrdinary);
    const Stored b = Codes(random_, kE4M3, Contracted::kColumns, size.n, size.k, kOrdinary);
    const GemmProblem problem = {size.m,   size.n,       size.k,       a.format,
                                 b.format, DType::kBF16, Bf16IfTheCpuCan(), DType::kF32};
    const std::shared_ptr<MemoryBudget> budget = MemoryBudget::Create(1 << 30);
    std::vector<float> c(static_cast<size_t>(size.m * size.n));
    PW_ASSERT_OK(gemm_->Run(problem, a.data.operand(), b.data.operand(), MatrixView(),
                            {c.data(), DType::kF32, size.m, size.n}, *budget));
    EXPECT_EQ(budget->peak_bytes(MemoryUse::kTransient), CpuGemm::WorkspaceBytes(problem));
    EXPECT_EQ(budget->used_bytes(), 0);
  }
}

}  // namespace
}  // namespace planewise
