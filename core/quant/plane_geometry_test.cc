#include "core/quant/plane_geometry.h"

#include <set>

#include "core/base/reason.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

using testing::HasSubstr;

struct Case {
  const char* name;
  Format format;
  BlockGeometry blocks;
  PlaneKind kind;
  // Of element [200, 300] in a matrix [260, 400].
  int64_t payload_index;
  int64_t scale_row;
  int64_t scale_column;
};

constexpr auto k1D = BlockGeometry::k1D;
constexpr auto k2D = BlockGeometry::k2D;
constexpr auto kRow = PlaneKind::kRow;
constexpr auto kColumn = PlaneKind::kColumn;
constexpr int64_t kPlain = 200 * 400 + 300;
constexpr int64_t kTransposed = 300 * 260 + 200;

const Case kCases[] = {
    {"mxfp8 1-D row", Format::kMxfp8, k1D, kRow, kPlain, 200, 300 / 32},
    {"mxfp8 1-D column", Format::kMxfp8, k1D, kColumn, kPlain, 200 / 32, 300},
    {"mxfp8 2-D row", Format::kMxfp8, k2D, kRow, kPlain, 200, 300 / 32},
    {"mxfp8 2-D column", Format::kMxfp8, k2D, kColumn, kPlain, 200 / 32, 300},
    {"nvfp4 1-D row", Format::kNvfp4, k1D, kRow, kPlain, 200, 300 / 16},
    {"nvfp4 1-D column", Format::kNvfp4, k1D, kColumn, kTransposed, 300, 200 / 16},
    {"nvfp4 2-D row", Format::kNvfp4, k2D, kRow, kPlain, 200, 300 / 16},
    {"nvfp4 2-D column", Format::kNvfp4, k2D, kColumn, kTransposed, 300, 200 / 16},
    {"block 1-D row", Format::kFp8Block, k1D, kRow, kPlain, 300 / 128, 200},
    {"block 1-D column", Format::kFp8Block, k1D, kColumn, kTransposed, 200 / 128, 300},
    {"block 2-D row", Format::kFp8Block, k2D, kRow, kPlain, 200 / 128, 300 / 128},
    {"block 2-D column", Format::kFp8Block, k2D, kColumn, kTransposed, 300 / 128, 200 / 128},
    {"per tensor row", Format::kFp8Current, k1D, kRow, kPlain, 0, 0},
    {"per tensor column", Format::kFp8Current, k1D, kColumn, kPlain, 0, 0},
};

PlaneLayout LayoutOf(const Case& c, MatrixShape shape, const PlaneOptions& options = {}) {
  return *PlaneLayoutFor(c.format, c.blocks, c.kind, shape, DType::kBF16, options);
}

TEST(PlaneGeometryTest, PutsElementsAndScalesWhereTheFormatStoresThem) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const PlaneLayout layout = LayoutOf(c, {260, 400});
    const PlaneGeometry geometry = GeometryOf(c.format, c.blocks, layout);
    EXPECT_EQ(geometry.rows, 260);
    EXPECT_EQ(geometry.columns, 400);
    EXPECT_EQ(geometry.PayloadIndex(200, 300), c.payload_index);
    EXPECT_EQ(geometry.ScaleIndex(200, 300), c.scale_row * layout.scale_columns + c.scale_column);
  }
}

// Packed rows begin at whole bytes.
TEST(PlaneGeometryTest, APackedRowOfAnOddNumberOfElementsIsPadded) {
  const PlaneLayout layout = *PlaneLayoutFor(Format::kNvfp4, k1D, kColumn, {5, 32}, DType::kBF16);
  const PlaneGeometry geometry = GeometryOf(Format::kNvfp4, k1D, layout);
  EXPECT_EQ(geometry.payload_stride, 6);
  EXPECT_EQ(geometry.PayloadIndex(4, 31), 31 * 6 + 4);
}

TEST(PlaneGeometryTest, EveryElementHasAPlaceOfItsOwnAndAScaleThatIsNotPadding) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const PlaneLayout layout = LayoutOf(c, {33, 144});
    const PlaneGeometry geometry = GeometryOf(c.format, c.blocks, layout);
    std::set<int64_t> places;
    for (int64_t i = 0; i < 33; ++i) {
      for (int64_t j = 0; j < 144; ++j) {
        EXPECT_TRUE(places.insert(geometry.PayloadIndex(i, j)).second);
        if (layout.shares_row_scales) continue;
        const int64_t scale = geometry.ScaleIndex(i, j);
        EXPECT_LT(scale / layout.scale_columns, layout.used_scale_rows);
        EXPECT_LT(scale % layout.scale_columns, layout.used_scale_columns);
      }
    }
  }
}

bool ReadsAlike(const PlaneGeometry& a, const PlaneGeometry& b) {
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < a.columns; ++j) {
      if (a.PayloadIndex(i, j) != b.PayloadIndex(i, j)) return false;
      if (a.ScaleIndex(i, j) != b.ScaleIndex(i, j)) return false;
    }
  }
  return true;
}

// A layout alone says how its plane is read, for every format and also where
// layouts of several coincide.
TEST(PlaneGeometryTest, FindsAGeometryThatReadsAsTheOneThatWrote) {
  constexpr MatrixShape kShapes[] = {{1, 1},    {1, 128}, {2, 129},   {128, 1},  {4, 512},
                                     {129, 33}, {3, 384}, {256, 256}, {300, 517}};
  for (const Case& c : kCases) {
    for (const MatrixShape shape : kShapes) {
      for (const bool stores_column : {false, true}) {
        SCOPED_TRACE(testing::Message() << c.name << " " << shape);
        PlaneLayout layout = LayoutOf(c, shape, {.stores_per_tensor_column = stores_column});
        PW_ASSERT_OK_AND_ASSIGN(const PlaneGeometry found, FindGeometry(layout, shape));
        EXPECT_TRUE(ReadsAlike(found, GeometryOf(c.format, c.blocks, layout)));
        EXPECT_EQ(found.format == Format::kMxfp8, c.format == Format::kMxfp8);
        EXPECT_EQ(found.format == Format::kNvfp4, c.format == Format::kNvfp4);
        if (layout.payload_dtype != DType::kF8E4M3) continue;
        layout.payload_dtype = DType::kF8E5M2;
        PW_EXPECT_OK(FindGeometry(layout, shape).status());
      }
    }
  }
  const PlaneLayout delayed = *PlaneLayoutFor(Format::kFp8Delayed, k1D, kRow, {8, 8}, DType::kBF16,
                                              {.amax_history_length = 3});
  PW_EXPECT_OK(FindGeometry(delayed, {8, 8}).status());
}

TEST(PlaneGeometryTest, RefusesALayoutOfAnotherShape) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    EXPECT_THAT(FindGeometry(LayoutOf(c, {260, 400}), {400, 260}),
                HasReason(Reason::kShapeMismatch, HasSubstr("a matrix [400, 260]")));
  }
  const PlaneLayout matrix =
      *PlaneLayoutFor(Format::kNone, k1D, PlaneKind::kHighPrecision, {8, 8}, DType::kBF16);
  EXPECT_THAT(FindGeometry(matrix, {8, 8}),
              HasReason(Reason::kInvalidRequest, HasSubstr("read it as it is")));
}

}  // namespace
}  // namespace planewise
