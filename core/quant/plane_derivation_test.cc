#include "core/quant/plane_derivation.h"

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/base/reason.h"
#include "core/quant/test_matrix.h"
#include "core/quant/test_plane.h"
#include "gtest/gtest.h"
#include "tests/testing/byte_matchers.h"
#include "tests/testing/seed.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

using testing::HasSubstr;

struct Case {
  const char* name;
  QuantizeSpec spec;
  bool stores_per_tensor_column = false;
};

constexpr auto k2D = BlockGeometry::k2D;

// Every format whose planes can be made from one another, every field that it has.
const Case kCases[] = {
    {"mxfp8 2-D", {.format = Format::kMxfp8, .geometry = k2D}},
    {"mxfp8 2-D, E5M2", {.format = Format::kMxfp8, .geometry = k2D, .element = DType::kF8E5M2}},
    {"nvfp4 2-D", {.format = Format::kNvfp4, .geometry = k2D, .element = DType::kF4E2M1}},
    {"block 2-D", {.format = Format::kFp8Block, .geometry = k2D, .power_of_two_scales = true}},
    {"block 2-D, F32 scales",
     {.format = Format::kFp8Block, .geometry = k2D, .element = DType::kF8E5M2}},
    {"current", {.format = Format::kFp8Current}},
    {"current, transposed", {.format = Format::kFp8Current, .power_of_two_scales = true}, true},
    {"current, E5M2, transposed",
     {.format = Format::kFp8Current, .element = DType::kF8E5M2, .amax_epsilon = 0.5f},
     true},
    {"delayed", {.format = Format::kFp8Delayed, .delayed_scale = 8.0f, .amax_history_length = 3}},
    {"delayed, transposed",
     {.format = Format::kFp8Delayed, .delayed_scale = 0.5f, .amax_history_length = 3},
     true},
    {"delayed, state elsewhere", {.format = Format::kFp8Delayed, .delayed_scale = 3.0f}, true},
};

// Whole blocks, one more and one less, several ranges, and nothing.
constexpr MatrixShape kShapes[] = {{0, 64},   {32, 32},  {1, 32},    {33, 160}, {128, 128},
                                   {129, 96}, {160, 64}, {300, 544}, {257, 32}, {512, 0}};
constexpr DType kHighPrecision[] = {DType::kF32, DType::kBF16, DType::kF16};

std::string What(const Case& c, DType dtype, MatrixShape shape) {
  return testing::PrintToString(c.name) + " of " + testing::PrintToString(dtype) + " " +
         testing::PrintToString(shape);
}

PlaneLayout LayoutOf(const Case& c, PlaneKind kind, MatrixShape shape) {
  PlaneLayout layout = *LayoutFor(c.spec, kind, shape);
  if (kind == PlaneKind::kColumn && c.stores_per_tensor_column) {
    layout = *PlaneLayoutFor(c.spec.format, c.spec.geometry, kind, shape, DType::kBF16,
                             {.amax_history_length = 1, .stores_per_tensor_column = true});
    layout.payload_dtype = c.spec.element;
  }
  return layout;
}

// Both planes of a matrix, from the matrix itself.
class BothPlanes {
 public:
  BothPlanes(const Case& c, MatrixView src)
      : row_(LayoutOf(c, PlaneKind::kRow, {src.rows, src.columns})),
        column_(LayoutOf(c, PlaneKind::kColumn, {src.rows, src.columns}), &row_) {
    const Quantizer& quantizer = ScalarQuantizer();
    TensorAmax amax;
    PW_EXPECT_OK(quantizer.MeasureAmax(src, c.spec, {true, true}, AllRows(src), &amax));
    PW_EXPECT_OK(
        quantizer.Quantize(src, c.spec, amax, AllRows(src), &row_.span(), &column_.span()));
  }

  const TestPlane& plane(PlaneKind kind) const { return kind == PlaneKind::kRow ? row_ : column_; }

 private:
  TestPlane row_;
  TestPlane column_;
};

constexpr std::pair<PlaneKind, PlaneKind> kDirections[] = {
    {PlaneKind::kRow, PlaneKind::kColumn},
    {PlaneKind::kColumn, PlaneKind::kRow},
};

void ExpectSamePlane(const TestPlane& plane, const TestPlane& want, const QuantizeSpec& spec) {
  EXPECT_THAT(plane.payload(), SameBytes(want.payload()));
  EXPECT_THAT(plane.scales(), SameBytes(want.scales()));
  if (spec.format == Format::kNvfp4) {
    EXPECT_EQ(plane.state(), want.state());
  }
  EXPECT_TRUE(plane.GuardsIntact());
}

TEST(PlaneDerivationTest, GivesTheBytesOfQuantizingTheSource) {
  std::mt19937_64 random(TestSeed());
  for (const Case& c : kCases) {
    for (const DType dtype : kHighPrecision) {
      for (const MatrixShape shape : kShapes) {
        for (const auto& [from, to] : kDirections) {
          SCOPED_TRACE(What(c, dtype, shape) + " " + testing::PrintToString(to));
          const Distribution distribution = kDistributions[random() % std::size(kDistributions)];
          const TestMatrix src(dtype, shape.out, shape.in, distribution, random);
          const BothPlanes planes(c, src.view());
          const TestPlane derived(planes.plane(to).layout());
          PW_ASSERT_OK(DerivePlane(c.spec.format, c.spec.geometry, planes.plane(from).const_span(),
                                   AllRows(src.view()), derived.span()));
          ExpectSamePlane(derived, planes.plane(to), c.spec);
          if (HasFailure()) return;  // The first is enough to read.
        }
      }
    }
  }
}

TEST(PlaneDerivationTest, PartsOfRowsGiveTheBytesOfTheWhole) {
  std::mt19937_64 random(TestSeed());
  for (const Case& c : kCases) {
    for (const auto& [from, to] : kDirections) {
      SCOPED_TRACE(What(c, DType::kBF16, {300, 160}) + " " + testing::PrintToString(to));
      const TestMatrix src(DType::kBF16, 300, 160, Distribution::kOrdinary, random);
      const BothPlanes planes(c, src.view());
      const TestPlane derived(planes.plane(to).layout());
      for (const RowRange rows : {RowRange{256, 44}, {0, 128}, {128, 128}}) {
        PW_ASSERT_OK(DerivePlane(c.spec.format, c.spec.geometry, planes.plane(from).const_span(),
                                 rows, derived.span()));
      }
      ExpectSamePlane(derived, planes.plane(to), c.spec);
    }
  }
}

// The state of delayed scaling has an owner, who may be using it.
TEST(PlaneDerivationTest, LeavesTheStateOfDelayedScalingAlone) {
  const Case c = {"delayed",
                  {.format = Format::kFp8Delayed, .delayed_scale = 2.0f, .amax_history_length = 3},
                  true};
  const TestMatrix src(DType::kBF16, 32, 32, std::vector<float>(32 * 32, 1.0f));
  const BothPlanes planes(c, src.view());
  const TestPlane derived(planes.plane(PlaneKind::kRow).layout());
  const std::vector<float> before = derived.state();
  PW_ASSERT_OK(DerivePlane(c.spec.format, c.spec.geometry,
                           planes.plane(PlaneKind::kColumn).const_span(), AllRows(src.view()),
                           derived.span()));
  EXPECT_EQ(derived.state(), before);
}

TEST(PlaneDerivationTest, RefusesPlanesWithOtherBlocks) {
  for (const Format format : {Format::kMxfp8, Format::kNvfp4, Format::kFp8Block}) {
    SCOPED_TRACE(Name(format));
    QuantizeSpec spec = {.format = format};
    if (format == Format::kNvfp4) spec.element = DType::kF4E2M1;
    const MatrixShape shape = {32, 32};
    const TestPlane row(*LayoutFor(spec, PlaneKind::kRow, shape));
    const TestPlane column(*LayoutFor(spec, PlaneKind::kColumn, shape));
    const std::vector<uint8_t> untouched = column.payload();
    EXPECT_THAT(DerivePlane(format, BlockGeometry::k1D, row.const_span(), {0, 32}, column.span()),
                HasReason(Reason::kColumnwiseMissing, HasSubstr("with 1d blocks cannot be made")));
    EXPECT_THAT(DerivePlane(format, BlockGeometry::k1D, column.const_span(), {0, 32}, row.span()),
                HasReason(Reason::kNeedsMaster, HasSubstr("needs the master weight")));
    EXPECT_THAT(column.payload(), SameBytes(untouched));
    EXPECT_THAT(row.payload(), SameBytes(untouched));
    PW_EXPECT_OK(CheckDerivable(format, BlockGeometry::k2D, PlaneKind::kColumn));
    PW_EXPECT_OK(CheckDerivable(format, BlockGeometry::k2D, PlaneKind::kRow));
  }
  EXPECT_THAT(CheckDerivable(Format::kNone, BlockGeometry::k1D, PlaneKind::kColumn),
              HasReason(Reason::kInvalidRequest));
  EXPECT_THAT(CheckDerivable(Format::kMxfp8, k2D, PlaneKind::kHighPrecision),
              HasReason(Reason::kInvalidRequest));
}

TEST(PlaneDerivationTest, RefusesWhatDoesNotFitAndWritesNothing) {
  const QuantizeSpec spec = {.format = Format::kFp8Block, .geometry = k2D};
  const TestPlane row(*LayoutFor(spec, PlaneKind::kRow, {256, 64}));
  const TestPlane column(*LayoutFor(spec, PlaneKind::kColumn, {256, 64}));
  const TestPlane narrow(*LayoutFor(spec, PlaneKind::kColumn, {256, 32}));
  const std::vector<uint8_t> untouched = column.payload();
  const auto derive = [&](const TestPlane& from, RowRange rows, const TestPlane& to) {
    return DerivePlane(Format::kFp8Block, k2D, from.const_span(), rows, to.span());
  };
  EXPECT_THAT(derive(row, {0, 256}, row), HasReason(Reason::kInvalidRequest));
  EXPECT_THAT(derive(row, {0, 256}, narrow), HasReason(Reason::kShapeMismatch));
  EXPECT_THAT(derive(row, {64, 64}, column), HasReason(Reason::kInvalidRequest));
  EXPECT_THAT(derive(row, {0, 384}, column), HasReason(Reason::kInvalidRequest));
  EXPECT_THAT(DerivePlane(Format::kFp8Current, k2D, row.const_span(), {0, 256}, column.span()),
              HasReason(Reason::kShapeMismatch));
  PlaneSpan other_codes = column.span();
  other_codes.layout.payload_dtype = DType::kF8E5M2;
  EXPECT_THAT(DerivePlane(Format::kFp8Block, k2D, row.const_span(), {0, 256}, other_codes),
              HasReason(Reason::kShapeMismatch));
  EXPECT_THAT(column.payload(), SameBytes(untouched));
}

}  // namespace
}  // namespace planewise
