#include "core/quant/quantizer.h"

#include <cmath>
#include <limits>
#include <vector>

#include "core/base/reason.h"
#include "core/numeric/bfloat16.h"
#include "core/numeric/float16.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

using testing::HasSubstr;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// One block a row, of the constant 2^exponent, or of zeros for nullopt.
std::vector<float> RowsOfPowers(std::initializer_list<std::optional<int>> exponents) {
  std::vector<float> values;
  for (const std::optional<int>& exponent : exponents) {
    values.insert(values.end(), kMxfp8Block,
                  exponent ? static_cast<float>(std::ldexp(1.0, *exponent)) : -0.0f);
  }
  return values;
}

class QuantizeToPlanesTest : public testing::Test {
 protected:
  absl::StatusOr<QuantizedPlanes> Quantize(const std::vector<float>& values, int64_t columns,
                                           PlaneWishes wishes) {
    const int64_t rows = static_cast<int64_t>(values.size()) / columns;
    return QuantizeToPlanes(ScalarQuantizer(), *budget_, MemoryUse::kWeights,
                            {values.data(), DType::kF32, rows, columns}, {.format = Format::kMxfp8},
                            wishes, WeightVersion(7), "weight \"w\"");
  }

  std::shared_ptr<MemoryBudget> budget_ = MemoryBudget::Create(100000);
};

TEST_F(QuantizeToPlanesTest, MakesThePlanesAskedForAndChargesTheirBytes) {
  const std::vector<float> values(64 * 96, 1.0f);
  {
    PW_ASSERT_OK_AND_ASSIGN(const QuantizedPlanes planes,
                            Quantize(values, 96, {.row = true, .column = true}));
    ASSERT_NE(planes.row, nullptr);
    ASSERT_NE(planes.column, nullptr);
    EXPECT_EQ(planes.row->layout.kind, PlaneKind::kRow);
    EXPECT_EQ(planes.column->layout.kind, PlaneKind::kColumn);
    EXPECT_EQ(planes.row->epoch, WeightVersion(7));
    EXPECT_EQ(planes.column->epoch, WeightVersion(7));
    EXPECT_EQ(budget_->used_bytes(MemoryUse::kWeights),
              planes.row->layout.total_bytes() + planes.column->layout.total_bytes());
    // 1.0 under 2^-8 is 256.
    EXPECT_EQ(planes.row->payload.bytes()[0], std::byte{0x78});
    EXPECT_EQ(planes.row->exponents, (ExponentRange{119, 119}));
    EXPECT_EQ(planes.column->exponents, (ExponentRange{119, 119}));
  }
  EXPECT_EQ(budget_->used_bytes(), 0);
  PW_ASSERT_OK_AND_ASSIGN(const QuantizedPlanes column_only,
                          Quantize(values, 96, {.row = false, .column = true}));
  EXPECT_EQ(column_only.row, nullptr);
  EXPECT_EQ(budget_->used_bytes(), column_only.column->layout.total_bytes());
}

TEST_F(QuantizeToPlanesTest, NamesTheMatrixInErrorsAndKeepsNothing) {
  EXPECT_THAT(Quantize(std::vector<float>(4 * 33), 33, {}),
              HasReason(Reason::kShapeNotDivisible, HasSubstr("weight \"w\"")));
  EXPECT_THAT(Quantize(std::vector<float>(1024 * 96), 96, {}),
              HasReason(Reason::kMemoryShortfall, HasSubstr("weight \"w\"")));
  // The row plane fits, the column plane does not.
  EXPECT_THAT(Quantize(std::vector<float>(512 * 128), 128, {.row = true, .column = true}),
              HasReason(Reason::kMemoryShortfall));
  EXPECT_EQ(budget_->used_bytes(), 0);
}

TEST_F(QuantizeToPlanesTest, ExponentRangeLeavesOutBlocksOfZero) {
  PW_ASSERT_OK_AND_ASSIGN(
      const QuantizedPlanes planes,
      Quantize(RowsOfPowers({std::nullopt, 3, -20, std::nullopt, 0, 11}), 32, {}));
  EXPECT_EQ(planes.row->exponents, (ExponentRange{127 - 20 - 8, 127 + 11 - 8}));
  PW_ASSERT_OK_AND_ASSIGN(const QuantizedPlanes zeros,
                          Quantize(RowsOfPowers({std::nullopt, std::nullopt}), 32, {}));
  EXPECT_EQ(zeros.row->exponents, std::nullopt);
}

TEST(NonZeroExponentsTest, ReadsCodesAndNotPadding) {
  PW_ASSERT_OK_AND_ASSIGN(const PlaneLayout layout,
                          Mxfp8LayoutFor(PlaneKind::kColumn, {40, 2}, DType::kF8E4M3));
  std::vector<uint8_t> payload(static_cast<size_t>(layout.payload_bytes), 0x80);  // -0
  std::vector<uint8_t> scales(static_cast<size_t>(layout.scale_bytes), 5);
  const int64_t second_row = layout.scale_columns;
  scales[0] = 10;
  scales[1] = 200;
  scales[static_cast<size_t>(second_row)] = 250;
  scales[static_cast<size_t>(second_row + 1)] = 100;
  const ConstPlaneSpan plane{layout, payload.data(), scales.data()};
  EXPECT_EQ(NonZeroExponents(plane), std::nullopt);
  payload[39 * 2 + 1] = 0x01;  // last row, column 1: in the short second block
  EXPECT_EQ(NonZeroExponents(plane), (ExponentRange{100, 100}));
  payload[0] = 0x7F;
  EXPECT_EQ(NonZeroExponents(plane), (ExponentRange{10, 100}));
}

template <typename HighPrecision>
void ExpectFindsEvery(DType dtype, HighPrecision one, std::vector<HighPrecision> non_finite) {
  constexpr int64_t kCount = 2 * 1024 + 40;
  std::vector<HighPrecision> values(kCount, one);
  const MatrixView matrix{values.data(), dtype, 1, kCount};
  EXPECT_EQ(FirstNonFinite(matrix), std::nullopt);
  for (const HighPrecision bad : non_finite) {
    for (const int64_t at : {kCount - 1, int64_t{1500}, int64_t{1024}, int64_t{1023}, int64_t{0}}) {
      values[static_cast<size_t>(at)] = bad;
      EXPECT_EQ(FirstNonFinite(matrix), at);
    }
    values.assign(kCount, one);
  }
}

TEST(FirstNonFiniteTest, FindsTheFirstOfAnyKindAnywhere) {
  ExpectFindsEvery<float>(DType::kF32, std::numeric_limits<float>::max(),
                          {kNan, -kNan, kInfinity, -kInfinity});
  ExpectFindsEvery<BFloat16>(DType::kBF16, {0xFF7F}, {{0x7F80}, {0xFF80}, {0x7FC0}, {0xFF81}});
  ExpectFindsEvery<Float16>(DType::kF16, {0xFBFF}, {{0x7C00}, {0xFC00}, {0x7E00}, {0xFC01}});
  EXPECT_EQ(FirstNonFinite({nullptr, DType::kF32, 0, 32}), std::nullopt);
}

}  // namespace
}  // namespace planewise
