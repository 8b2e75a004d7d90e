#include "core/tensor/plane_layout.h"

#include "core/base/error.h"
#include "gtest/gtest.h"

namespace planewise {
namespace {

// Sizes that Transformer Engine's scale shapes give, computed apart from this code
// (its rowwise and columnwise data, scale_inv and amax). Columns: MXFP8, NVFP4,
// block FP8 2-D and 1-D, each row and column.
struct Sizes {
  MatrixShape shape;
  int64_t mxfp8[2];
  int64_t nvfp4[2];
  int64_t block_2d[2];
  int64_t block_1d[2];
};

const Sizes kSizes[] = {
    {{4096, 4096},
     {17301504, 17301504},
     {9437188, 9437188},
     {16781312, 16781312},
     {17301504, 17301504}},
    {{768, 3072}, {2433024, 2433024}, {1327108, 1327108}, {2359872, 2360064}, {2433024, 2433024}},
    {{288, 128}, {38400, 38400}, {21508, 20996}, {36912, 36880}, {38016, 38400}},
    {{160, 64}, {11264, 11264}, {6148, 6660}, {10272, 10256}, {10880, 10752}},
    {{96, 96}, {9728, 9728}, {5636, 5636}, {9232, 9232}, {9600, 9600}},
    {{64, 64}, {4608, 4608}, {2564, 2564}, {4112, 4112}, {4352, 4352}},
    {{32, 64}, {2560, 2560}, {1540, 1540}, {2064, 2064}, {2176, 2304}},
    {{0, 64}, {0, 0}, {4, 4}, {0, 0}, {0, 0}},
};

PlaneLayout Layout(Format format, BlockGeometry geometry, PlaneKind kind, MatrixShape shape,
                   const PlaneOptions& options = {}) {
  return PlaneLayoutFor(format, geometry, kind, shape, DType::kBF16, options).value();
}

void ExpectBytes(Format format, BlockGeometry geometry, MatrixShape shape,
                 const int64_t (&want)[2]) {
  SCOPED_TRACE(testing::Message() << Name(format) << " " << Name(geometry) << " " << shape);
  EXPECT_EQ(Layout(format, geometry, PlaneKind::kRow, shape).total_bytes(), want[0]);
  EXPECT_EQ(Layout(format, geometry, PlaneKind::kColumn, shape).total_bytes(), want[1]);
}

TEST(PlaneLayoutTest, BytesArePayloadPaddedScalesAndState) {
  for (const Sizes& test : kSizes) {
    ExpectBytes(Format::kMxfp8, BlockGeometry::k1D, test.shape, test.mxfp8);
    for (const BlockGeometry geometry : {BlockGeometry::k1D, BlockGeometry::k2D}) {
      ExpectBytes(Format::kNvfp4, geometry, test.shape, test.nvfp4);
    }
    ExpectBytes(Format::kFp8Block, BlockGeometry::k2D, test.shape, test.block_2d);
    ExpectBytes(Format::kFp8Block, BlockGeometry::k1D, test.shape, test.block_1d);
  }
}

TEST(PlaneLayoutTest, RaggedBlocksAndOddColumnsFillWholeUnits) {
  const MatrixShape shape{300, 517};
  ExpectBytes(Format::kFp8Block, BlockGeometry::k1D, shape,
              {300 * 517 + 5 * 300 * 4, 300 * 517 + 3 * 520 * 4});
  ExpectBytes(Format::kFp8Block, BlockGeometry::k2D, shape,
              {300 * 517 + 3 * 8 * 4, 300 * 517 + 5 * 4 * 4});
  // 33 blocks of 16, padded to 36; each row of 517 nibbles starts a byte.
  ExpectBytes(Format::kNvfp4, BlockGeometry::k1D, shape,
              {300 * 259 + 384 * 36 + 4, 517 * 150 + 640 * 20 + 4});
}

TEST(PlaneLayoutTest, BothPlanesOf2DMxfp8HaveOnePayload) {
  const MatrixShape shape{288, 128};
  const PlaneLayout row = Layout(Format::kMxfp8, BlockGeometry::k2D, PlaneKind::kRow, shape);
  const PlaneLayout column = Layout(Format::kMxfp8, BlockGeometry::k2D, PlaneKind::kColumn, shape);
  EXPECT_EQ(row, Layout(Format::kMxfp8, BlockGeometry::k1D, PlaneKind::kRow, shape));
  EXPECT_TRUE(column.shares_row_payload);
  EXPECT_FALSE(column.shares_row_scales);
  EXPECT_EQ(column.payload_bytes, 0);
  EXPECT_EQ(column.total_bytes(), 12 * 128);
}

TEST(PlaneLayoutTest, APerTensorColumnIsStoredOnlyWhereItIsAsked) {
  const MatrixShape shape{300, 517};
  for (const Format format : {Format::kFp8Current, Format::kFp8Delayed}) {
    PlaneOptions options;
    options.amax_history_length = 16;
    const auto layout = [&](PlaneKind kind) {
      return Layout(format, BlockGeometry::k1D, kind, shape, options);
    };
    const int64_t state_bytes = format == Format::kFp8Delayed ? 17 * 4 : 0;
    EXPECT_EQ(layout(PlaneKind::kRow).total_bytes(), 300 * 517 + 4 + state_bytes);
    EXPECT_EQ(layout(PlaneKind::kColumn).total_bytes(), 0);
    EXPECT_EQ(layout(PlaneKind::kColumn).payload_rows, 300);
    options.stores_per_tensor_column = true;
    EXPECT_EQ(layout(PlaneKind::kColumn).total_bytes(), 300 * 517) << "the scale counts once";
    EXPECT_EQ(layout(PlaneKind::kColumn).payload_rows, 517);
    EXPECT_EQ(layout(PlaneKind::kRow).total_bytes(), 300 * 517 + 4 + state_bytes);
  }
}

TEST(PlaneLayoutTest, DelayedScalingNeedsAHistory) {
  for (const int64_t length : {int64_t{-1}, int64_t{0}, kAmaxHistoryLengthMax + 1}) {
    PlaneOptions options;
    options.amax_history_length = length;
    EXPECT_EQ(ReasonOf(PlaneLayoutFor(Format::kFp8Delayed, BlockGeometry::k1D, PlaneKind::kRow,
                                      {32, 32}, DType::kBF16, options)
                           .status()),
              Reason::kInvalidRequest);
  }
}

TEST(PlaneLayoutTest, HighPrecisionHasNoRowPlane) {
  EXPECT_EQ(ReasonOf(PlaneLayoutFor(Format::kNone, BlockGeometry::k1D, PlaneKind::kRow, {32, 32},
                                    DType::kBF16)
                         .status()),
            Reason::kInvalidRequest);
}

TEST(PlaneLayoutTest, TheLayoutOfAWeightIsItsRecipes) {
  const MatrixShape shape{256, 384};
  for (const Format format : HostableFormats()) {
    const Recipe recipe = DefaultRecipe(format);
    const PlaneKind kind = recipe.quantized() ? PlaneKind::kRow : PlaneKind::kHighPrecision;
    PlaneOptions options;
    options.amax_history_length = recipe.amax_history_length;
    EXPECT_EQ(WeightPlaneLayout(recipe, kind, shape, DType::kBF16).value(),
              Layout(format, recipe.weight_geometry, kind, shape, options));
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
