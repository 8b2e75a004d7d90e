#include "core/quant/weight_spec.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

MatrixView Row(const std::vector<float>& values) {
  return {values.data(), DType::kF32, 1, static_cast<int64_t>(values.size())};
}

TEST(WeightSpecTest, ADelayedScaleBeginsWithTheWeightsOwnMagnitude) {
  Recipe recipe = DefaultRecipe(Format::kFp8Delayed);
  const std::vector<float> weight = {0.25f, -3.5f, 1.0f};
  PW_ASSERT_OK_AND_ASSIGN(QuantizeSpec spec, NewWeightSpec(ScalarQuantizer(), recipe, Row(weight)));
  EXPECT_EQ(spec.delayed_scale, 448.0f / 3.5f);
  recipe.margin = 2;
  recipe.amax_algorithm = AmaxAlgorithm::kMostRecent;
  PW_ASSERT_OK_AND_ASSIGN(spec, NewWeightSpec(ScalarQuantizer(), recipe, Row(weight)));
  EXPECT_EQ(spec.delayed_scale, 112.0f / 3.5f);
  EXPECT_EQ(spec.amax_history_length, recipe.amax_history_length);
}

TEST(WeightSpecTest, AMagnitudeThatGivesNoScaleLeavesItAtOne) {
  const Recipe recipe = DefaultRecipe(Format::kFp8Delayed);
  for (const float largest : {0.0f, NAN, HUGE_VALF}) {
    PW_ASSERT_OK_AND_ASSIGN(const QuantizeSpec spec,
                            NewWeightSpec(ScalarQuantizer(), recipe, Row({largest, 0.0f})));
    EXPECT_EQ(spec.delayed_scale, 1.0f) << largest;
  }
}

TEST(WeightSpecTest, OtherFormatsAreThoseOfTheirRecipe) {
  for (const Format format :
       {Format::kMxfp8, Format::kNvfp4, Format::kFp8Block, Format::kFp8Current}) {
    const Recipe recipe = DefaultRecipe(format);
    PW_ASSERT_OK_AND_ASSIGN(const QuantizeSpec spec,
                            NewWeightSpec(ScalarQuantizer(), recipe, Row({8.0f})));
    EXPECT_EQ(spec.format, format);
    EXPECT_EQ(spec.geometry, QuantizeSpecFor(recipe, OperandRole::kWeight).geometry);
    EXPECT_EQ(spec.delayed_scale, 1.0f);
  }
}

}  // namespace
}  // namespace planewise
