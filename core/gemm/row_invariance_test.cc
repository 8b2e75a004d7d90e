// A row of C has the same bits for every number of rows and at every position
// among them, on every path.

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/gemm/cpu_gemm.h"
#include "core/gemm/test_operand.h"
#include "gtest/gtest.h"
#include "tests/testing/seed.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

constexpr int64_t kMostRows = 512;
constexpr int64_t kPoolRows = kMostRows + 61;
constexpr int64_t kColumns = 96;
constexpr int64_t kOneChunk = 160;  // of the sum
constexpr int64_t kTwoChunks = 2112;

struct Case {
  absl::string_view name;
  OperandKind a;
  DType a_dtype;
  OperandKind b;
  Contracted b_contracted;
  DType value_dtype;
  DType compute;
  int64_t length;
  ExponentRange a_exponents = {110, 124};
};

constexpr DType kE4M3 = DType::kF8E4M3;
constexpr auto kColumnsOfB = Contracted::kColumns;  // as fprop reads W
constexpr auto kRowsOfB = Contracted::kRows;        // as dgrad reads W

const Case kCases[] = {
    {"codes in BF16, fprop", OperandKind::kCodes, kE4M3, OperandKind::kCodes, kColumnsOfB,
     DType::kBF16, DType::kBF16, kTwoChunks},
    {"codes in BF16, dgrad", OperandKind::kCodes, DType::kF8E5M2, OperandKind::kCodes, kRowsOfB,
     DType::kBF16, DType::kBF16, kOneChunk},
    {"codes in F32", OperandKind::kCodes, kE4M3, OperandKind::kCodes, kColumnsOfB, DType::kBF16,
     DType::kF32, kOneChunk},
    // Plain, shifted and wide rows stand beside one another.
    {"codes of any exponent", OperandKind::kCodes, kE4M3, OperandKind::kCodes, kColumnsOfB,
     DType::kBF16, DType::kBF16, kOneChunk, {0, 254}},
    {"BF16", OperandKind::kDense, DType::kBF16, OperandKind::kDense, kColumnsOfB, DType::kBF16,
     DType::kBF16, kTwoChunks},
    {"F32", OperandKind::kDense, DType::kF32, OperandKind::kDense, kRowsOfB, DType::kF32,
     DType::kF32, kOneChunk},
    {"F16", OperandKind::kDense, DType::kF16, OperandKind::kDense, kColumnsOfB, DType::kF16,
     DType::kF32, kOneChunk},
    {"BF16 by dequantized values", OperandKind::kDense, DType::kBF16, OperandKind::kValues,
     kRowsOfB, DType::kBF16, DType::kBF16, kOneChunk},
};

class RowInvarianceTest : public testing::TestWithParam<Case> {};

TestOperand MakeA(const Case& c, std::mt19937_64& random) {
  if (c.a == OperandKind::kDense) {
    return TestOperand::Dense(random, c.a_dtype, kPoolRows, c.length);
  }
  TestOperand a =
      TestOperand::Plane(random, PlaneKind::kRow, c.a_dtype, kPoolRows, c.length, c.a_exponents);
  // Some rows keep the wide range, others get a narrow one of their own.
  for (int64_t row = 0; row < kPoolRows; ++row) {
    if (row % 40 == 0) continue;
    const int64_t base = c.a_exponents.min + static_cast<int64_t>(random() % 8) *
                                                 (c.a_exponents.max - c.a_exponents.min) / 8;
    for (int64_t block = 0; block < c.length / 32; ++block) {
      a.Scale(row, block) = static_cast<uint8_t>(base + static_cast<int64_t>(random() % 3));
    }
  }
  a.UpdateExponents();
  return a;
}

TestOperand MakeB(const Case& c, std::mt19937_64& random) {
  const bool along_columns = c.b_contracted == Contracted::kColumns;
  const int64_t rows = along_columns ? kColumns : c.length;
  const int64_t columns = along_columns ? c.length : kColumns;
  if (c.b == OperandKind::kDense) return TestOperand::Dense(random, c.value_dtype, rows, columns);
  const PlaneKind kind =
      along_columns || c.b == OperandKind::kValues ? PlaneKind::kRow : PlaneKind::kColumn;
  return TestOperand::Plane(random, kind, kE4M3, rows, columns, {110, 124});
}

TEST_P(RowInvarianceTest, EveryCountAndPositionGivesTheSameBits) {
  const Case& c = GetParam();
  std::mt19937_64 random(TestSeed());
  const std::shared_ptr<MemoryBudget> budget = MemoryBudget::Create(int64_t{1} << 30);
  PW_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<CpuGemm> gemm, CpuGemm::Create(2, *budget));
  const TestOperand a = MakeA(c, random);
  const TestOperand b = MakeB(c, random);
  const DType compute =
      c.compute == DType::kBF16 && !CpuMultipliesBf16() ? DType::kF32 : c.compute;
  const auto run = [&](int64_t first_row, int64_t rows) {
    const TestOperand part = a.Rows(first_row, rows);
    const GemmProblem problem = {rows, kColumns, c.length,
                                 part.Format(c.a, Contracted::kColumns),
                                 b.Format(c.b, c.b_contracted),
                                 c.value_dtype, compute, DType::kF32};
    std::vector<float> result(static_cast<size_t>(rows * kColumns));
    const absl::StatusOr<GemmPath> path =
        gemm->Run(problem, part.operand(), b.operand(), MatrixView(),
                  {result.data(), DType::kF32, rows, kColumns}, *budget);
    EXPECT_TRUE(path.ok()) << path.status();
    return result;
  };

  std::vector<std::vector<float>> alone;
  for (int64_t row = 0; row < kPoolRows; ++row) alone.push_back(run(row, 1));
  for (int64_t rows = 2; rows <= kMostRows; ++rows) {
    const int64_t first_row = static_cast<int64_t>(random() % (kPoolRows - kMostRows + 1));
    const std::vector<float> together = run(first_row, rows);
    for (int64_t row = 0; row < rows; ++row) {
      ASSERT_EQ(std::memcmp(together.data() + row * kColumns,
                            alone[static_cast<size_t>(first_row + row)].data(),
                            kColumns * sizeof(float)),
                0)
          << "row " << first_row + row << " at " << row << " of " << rows;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Paths, RowInvarianceTest, testing::ValuesIn(kCases),
                         [](const testing::TestParamInfo<Case>& info) {
                           std::string name(info.param.name);
                           for (char& letter : name) {
                             if (letter == ' ' || letter == ',') letter = '_';
                           }
                           return name;
                         });

}  // namespace
}  // namespace planewise
