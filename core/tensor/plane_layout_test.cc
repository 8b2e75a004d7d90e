#include "core/tensor/plane_layout.h"

#include "core/base/error.h"
#include "gtest/gtest.h"

namespace planewise {
namespace {

struct Case {
  MatrixShape shape;
  int64_t row_bytes;
  int64_t column_bytes;
};

// Sizes that Transformer Engine's scale shapes give, computed by hand.
const Case kMxfp8Cases[] = {
    {{4096, 4096}, 17301504, 17301504}, {{768, 3072}, 2433024, 2433024},
    {{288, 128}, 38400, 38400},         {{160, 64}, 11264, 11264},
    {{96, 96}, 9728, 9728},             {{64, 64}, 4608, 4608},
    {{32, 64}, 2560, 2560},             {{0, 64}, 0, 0},
};

TEST(PlaneLayoutTest, Mxfp8BytesArePayloadPlusPaddedScales) {
  for (const Case& test : kMxfp8Cases) {
    SCOPED_TRACE(testing::Message() << test.shape);
    const auto row = PlaneLayoutFor(Format::kMxfp8, BlockGeometry::k1D, PlaneKind::kRow,
                                    test.shape, DType::kBF16);
    const auto column = PlaneLayoutFor(Format::kMxfp8, BlockGeometry::k1D, PlaneKind::kColumn,
                                       test.shape, DType::kBF16);
    ASSERT_TRUE(row.ok() && column.ok());
    EXPECT_EQ(row->total_bytes(), test.row_bytes);
    EXPECT_EQ(column->total_bytes(), test.column_bytes);
  }
}

TEST(PlaneLayoutTest, HighPrecisionIsTheMatrixItself) {
  const auto layout = PlaneLayoutFor(Format::kNone, BlockGeometry::k1D, PlaneKind::kHighPrecision,
                                     {48, 20}, DType::kBF16);
  ASSERT_TRUE(layout.ok());
  EXPECT_EQ(layout->total_bytes(), 48 * 20 * 2);
  EXPECT_EQ(layout->scale_bytes, 0);
}

TEST(PlaneLayoutTest, RefusesWhatDoesNotFitAnInteger) {
  const auto layout = PlaneLayoutFor(Format::kMxfp8, BlockGeometry::k1D, PlaneKind::kRow,
                                     {int64_t{1} << 40, int64_t{1} << 40}, DType::kBF16);
  EXPECT_EQ(ReasonOf(layout.status()), Reason::kLimitExceeded);
  EXPECT_EQ(ReasonOf(PlaneLayoutFor(Format::kMxfp8, BlockGeometry::k1D, PlaneKind::kRow, {-32, 32},
                                    DType::kBF16)
                         .status()),
            Reason::kInvalidRequest);
}

}  // namespace
}  // namespace planewise
