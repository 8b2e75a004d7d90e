#include "core/quant/scale_swizzle.h"

#include <random>
#include <set>
#include <vector>

#include "core/base/reason.h"
#include "gtest/gtest.h"
#include "tests/testing/byte_matchers.h"
#include "tests/testing/seed.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

using testing::HasSubstr;

constexpr uint8_t kDirty = 0xA5;

// The order a second time: walks over the swizzled bytes as a GEMM does (tile by
// tile, then 32 lanes, then the four groups of 32 rows, then four blocks) and looks
// up which element of the matrix each byte scales.
std::vector<uint8_t> AsAGemmReads(const PlaneLayout& layout, const std::vector<uint8_t>& compact) {
  const bool rows_are_blocks =
      layout.kind == PlaneKind::kColumn && layout.scale_dtype == DType::kF8E8M0;
  const int64_t outer_count = rows_are_blocks ? layout.scale_columns : layout.scale_rows;
  const int64_t inner_count = rows_are_blocks ? layout.scale_rows : layout.scale_columns;
  std::vector<uint8_t> swizzled;
  for (int64_t outer_tile = 0; outer_tile < outer_count; outer_tile += 128) {
    for (int64_t inner_tile = 0; inner_tile < inner_count; inner_tile += 4) {
      for (int64_t lane = 0; lane < 32; ++lane) {
        for (int64_t group = 0; group < 4; ++group) {
          for (int64_t block = 0; block < 4; ++block) {
            const int64_t outer = outer_tile + group * 32 + lane;
            const int64_t inner = inner_tile + block;
            const int64_t row = rows_are_blocks ? inner : outer;
            const int64_t column = rows_are_blocks ? outer : inner;
            const bool used = row < layout.used_scale_rows && column < layout.used_scale_columns;
            swizzled.push_back(
                used ? compact[static_cast<size_t>(row * layout.scale_columns + column)] : 0);
          }
        }
      }
    }
  }
  return swizzled;
}

// Layouts of either plane: whole tiles, parts of tiles in each direction, nothing.
std::vector<PlaneLayout> Layouts() {
  constexpr MatrixShape kShapes[] = {{0, 64},   {1, 32},   {128, 128}, {256, 384}, {96, 160},
                                     {129, 32}, {260, 96}, {64, 2080}, {513, 64}};
  std::vector<PlaneLayout> layouts;
  for (const Format format : {Format::kMxfp8, Format::kNvfp4}) {
    for (const PlaneKind kind : {PlaneKind::kRow, PlaneKind::kColumn}) {
      for (const MatrixShape shape : kShapes) {
        layouts.push_back(*PlaneLayoutFor(format, BlockGeometry::k1D, kind, shape, DType::kBF16));
      }
    }
  }
  return layouts;
}

// Scales whose padding is not 0.
std::vector<uint8_t> DirtyScales(const PlaneLayout& layout, std::mt19937_64& random) {
  std::vector<uint8_t> scales(static_cast<size_t>(layout.scale_bytes));
  for (uint8_t& scale : scales) scale = static_cast<uint8_t>(1 + random() % 255);
  return scales;
}

std::vector<uint8_t> WithoutPadding(const PlaneLayout& layout, std::vector<uint8_t> scales) {
  for (int64_t i = 0; i < layout.scale_bytes; ++i) {
    const bool used = i / layout.scale_columns < layout.used_scale_rows &&
                      i % layout.scale_columns < layout.used_scale_columns;
    if (!used) scales[static_cast<size_t>(i)] = 0;
  }
  return scales;
}

TEST(ScaleSwizzleTest, LiesAsAGemmReadsIt) {
  std::mt19937_64 random(TestSeed());
  for (const PlaneLayout& layout : Layouts()) {
    SCOPED_TRACE(testing::Message()
                 << layout.scale_dtype << " " << layout.kind << " " << layout.used_scale_rows
                 << " by " << layout.used_scale_columns);
    const std::vector<uint8_t> compact = DirtyScales(layout, random);
    ASSERT_EQ(SwizzledScaleBytes(layout), layout.scale_bytes);
    std::vector<uint8_t> swizzled(compact.size(), kDirty);
    PW_ASSERT_OK(SwizzleScales(layout, compact.data(), swizzled.data()));
    EXPECT_THAT(swizzled, SameBytes(AsAGemmReads(layout, compact)));
  }
}

TEST(ScaleSwizzleTest, ComesBackWithPaddingZero) {
  std::mt19937_64 random(TestSeed());
  for (const PlaneLayout& layout : Layouts()) {
    SCOPED_TRACE(testing::Message()
                 << layout.scale_dtype << " " << layout.kind << " " << layout.used_scale_rows
                 << " by " << layout.used_scale_columns);
    const std::vector<uint8_t> compact = DirtyScales(layout, random);
    std::vector<uint8_t> swizzled(compact.size(), kDirty);
    PW_ASSERT_OK(SwizzleScales(layout, compact.data(), swizzled.data()));
    std::vector<uint8_t> back(compact.size(), kDirty);
    PW_ASSERT_OK(UnswizzleScales(layout, swizzled.data(), back.data()));
    EXPECT_THAT(back, SameBytes(WithoutPadding(layout, compact)));

    const std::vector<uint8_t> foreign = DirtyScales(layout, random);  // padding not 0
    PW_ASSERT_OK(UnswizzleScales(layout, foreign.data(), back.data()));
    EXPECT_THAT(back, SameBytes(WithoutPadding(layout, back)));
  }
}

TEST(ScaleSwizzleTest, EveryPlaceOfATileIsTakenOnce) {
  std::set<int64_t> places;
  for (int64_t outer = 0; outer < 256; ++outer) {
    for (int64_t inner = 0; inner < 12; ++inner) {
      places.insert(SwizzledScaleIndex(outer, inner, 3));
    }
  }
  EXPECT_EQ(places.size(), 256u * 12u);
  EXPECT_EQ(*places.begin(), 0);
  EXPECT_EQ(*places.rbegin(), 256 * 12 - 1);
}

TEST(ScaleSwizzleTest, RefusesScalesThatNoGemmReadsSo) {
  uint8_t byte = kDirty;
  for (const PlaneKind kind : {PlaneKind::kRow, PlaneKind::kColumn, PlaneKind::kHighPrecision}) {
    const PlaneLayout layout =
        *PlaneLayoutFor(Format::kFp8Block, BlockGeometry::k2D, kind, {32, 64}, DType::kBF16);
    EXPECT_EQ(SwizzledScaleBytes(layout), 0);
    EXPECT_THAT(SwizzleScales(layout, &byte, &byte),
                HasReason(Reason::kInvalidRequest, HasSubstr("required F8_E8M0 or F8_E4M3")));
    EXPECT_THAT(UnswizzleScales(layout, &byte, &byte), HasReason(Reason::kInvalidRequest));
  }
  EXPECT_EQ(byte, kDirty);
}

}  // namespace
}  // namespace planewise
