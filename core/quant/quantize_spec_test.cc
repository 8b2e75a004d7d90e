#include "core/quant/quantize_spec.h"

#include "core/base/reason.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

using testing::HasSubstr;

constexpr Format kFormats[] = {Format::kMxfp8, Format::kNvfp4, Format::kFp8Block,
                               Format::kFp8Current, Format::kFp8Delayed};
constexpr OperandRole kRoles[] = {OperandRole::kWeight, OperandRole::kActivation,
                                  OperandRole::kGradient};

TEST(QuantizeSpecTest, ElementsFollowFormatAndRole) {
  for (const Format format : kFormats) {
    for (const Fp8Format fp8_format : {Fp8Format::kE4M3, Fp8Format::kHybrid}) {
      for (const OperandRole role : kRoles) {
        Recipe recipe = DefaultRecipe(format);
        recipe.fp8_format = fp8_format;
        const bool wide = fp8_format == Fp8Format::kHybrid && role == OperandRole::kGradient;
        const DType want = format == Format::kNvfp4 ? DType::kF4E2M1
                           : wide                   ? DType::kF8E5M2
                                                    : DType::kF8E4M3;
        EXPECT_EQ(QuantizeSpecFor(recipe, role).element, want) << recipe;
        EXPECT_EQ(QuantizeSpecFor(recipe, role).format, format);
      }
    }
  }
}

TEST(QuantizeSpecTest, OnlyWeightsHaveTheGeometryOfWeights) {
  for (const Format format : {Format::kMxfp8, Format::kNvfp4, Format::kFp8Block}) {
    for (const BlockGeometry geometry : {BlockGeometry::k1D, BlockGeometry::k2D}) {
      Recipe recipe = DefaultRecipe(format);
      recipe.weight_geometry = geometry;
      EXPECT_EQ(QuantizeSpecFor(recipe, OperandRole::kWeight).geometry, geometry);
      EXPECT_EQ(QuantizeSpecFor(recipe, OperandRole::kActivation).geometry, BlockGeometry::k1D);
      EXPECT_EQ(QuantizeSpecFor(recipe, OperandRole::kGradient).geometry, BlockGeometry::k1D);
    }
  }
}

TEST(QuantizeSpecTest, ScaleRulesAreTheRecipes) {
  Recipe recipe = DefaultRecipe(Format::kFp8Current);
  recipe.power_of_two_scales = true;
  recipe.amax_epsilon = 0.25f;
  for (const OperandRole role : kRoles) {
    EXPECT_TRUE(QuantizeSpecFor(recipe, role).power_of_two_scales);
    EXPECT_EQ(QuantizeSpecFor(recipe, role).amax_epsilon, 0.25f);
  }
}

TEST(QuantizeSpecTest, WeightsAreNeverTransformedOrRoundedStochastically) {
  const StochasticKey key = {1, 2, 3};
  for (const bool hadamard : {false, true}) {
    for (const bool stochastic : {false, true}) {
      Recipe recipe = DefaultRecipe(Format::kNvfp4);
      recipe.hadamard = hadamard;
      recipe.stochastic_rounding = stochastic;
      const QuantizeSpec weight = QuantizeSpecFor(recipe, OperandRole::kWeight, key);
      EXPECT_FALSE(weight.hadamard_column);
      EXPECT_EQ(weight.stochastic, std::nullopt);
      const QuantizeSpec activation = QuantizeSpecFor(recipe, OperandRole::kActivation, key);
      EXPECT_EQ(activation.hadamard_column, hadamard);
      EXPECT_EQ(activation.stochastic, std::nullopt);
      const QuantizeSpec gradient = QuantizeSpecFor(recipe, OperandRole::kGradient, key);
      EXPECT_EQ(gradient.hadamard_column, hadamard);
      EXPECT_EQ(gradient.stochastic, stochastic ? std::optional(key) : std::nullopt);
    }
  }
}

// The state of X and dY is their session's, not a plane's.
TEST(QuantizeSpecTest, OnlyWeightsOfDelayedScalingHaveStateInTheirPlanes) {
  const Recipe recipe = DefaultRecipe(Format::kFp8Delayed);
  for (const OperandRole role : kRoles) {
    PW_ASSERT_OK_AND_ASSIGN(const PlaneLayout row,
                            LayoutFor(QuantizeSpecFor(recipe, role), PlaneKind::kRow, {8, 16}));
    EXPECT_EQ(row.state_bytes, role == OperandRole::kWeight ? 4 * (1 + 1024) : 0);
    EXPECT_EQ(row.scale_bytes, 4);
    EXPECT_EQ(row.payload_bytes, 8 * 16);
  }
}

TEST(QuantizeSpecTest, LayoutsAreThoseOfTheFormatWithTheElementsOfTheSpec) {
  for (const Format format : kFormats) {
    const Recipe recipe = DefaultRecipe(format);
    for (const PlaneKind kind : {PlaneKind::kRow, PlaneKind::kColumn}) {
      EXPECT_THAT(LayoutFor(QuantizeSpecFor(recipe, OperandRole::kWeight), kind, {96, 160}),
                  IsOkAndHolds(*WeightPlaneLayout(recipe, kind, {96, 160}, DType::kBF16)));
    }
  }
  PW_ASSERT_OK_AND_ASSIGN(
      const PlaneLayout wide,
      LayoutFor({.format = Format::kFp8Block, .element = DType::kF8E5M2}, PlaneKind::kRow, {3, 5}));
  EXPECT_EQ(wide.payload_dtype, DType::kF8E5M2);
}

TEST(QuantizeSpecTest, ATransformedColumnPlaneHasWholeGroups) {
  const QuantizeSpec spec = {
      .format = Format::kNvfp4, .element = DType::kF4E2M1, .hadamard_column = true};
  PW_ASSERT_OK_AND_ASSIGN(const PlaneLayout column, LayoutFor(spec, PlaneKind::kColumn, {17, 48}));
  EXPECT_EQ(column.payload_rows, 48);
  EXPECT_EQ(column.payload_columns, 32);
  PW_ASSERT_OK_AND_ASSIGN(const PlaneLayout row, LayoutFor(spec, PlaneKind::kRow, {17, 48}));
  EXPECT_EQ(row.payload_rows, 17);
}

TEST(QuantizeSpecTest, RefusesWhatNoFormatHas) {
  EXPECT_THAT(CheckSpec({}), HasReason(Reason::kInvalidRequest, HasSubstr("format none")));
  EXPECT_THAT(CheckSpec({.format = Format::kNvfp4}),
              HasReason(Reason::kDtypeUnsupported, HasSubstr("of F8_E4M3; required F4")));
  EXPECT_THAT(CheckSpec({.format = Format::kFp8Block, .element = DType::kF4E2M1}),
              HasReason(Reason::kDtypeUnsupported, HasSubstr("required F8_E4M3 or F8_E5M2")));
  EXPECT_THAT(CheckSpec({.format = Format::kMxfp8, .hadamard_column = true}),
              HasReason(Reason::kInvalidRequest, HasSubstr("a Hadamard transform of mxfp8")));
  EXPECT_THAT(CheckSpec({.format = Format::kNvfp4,
                         .geometry = BlockGeometry::k2D,
                         .element = DType::kF4E2M1,
                         .stochastic = StochasticKey{}}),
              HasReason(Reason::kInvalidRequest, HasSubstr("stochastic rounding of nvfp4")));
  EXPECT_THAT(LayoutFor({.format = Format::kMxfp8}, PlaneKind::kHighPrecision, {1, 1}),
              HasReason(Reason::kInvalidRequest));
}

}  // namespace
}  // namespace planewise
