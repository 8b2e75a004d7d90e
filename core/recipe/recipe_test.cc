#include "core/recipe/recipe.h"

#include <set>

#include "core/base/error.h"
#include "gtest/gtest.h"

namespace planewise {
namespace {

TEST(RecipeTest, PrintsOnlyWhatIsNotDefault) {
  Recipe recipe = DefaultRecipe(Format::kMxfp8);
  EXPECT_EQ(recipe.ToString(), "mxfp8");
  recipe.backward_override = BackwardOverride::kDequantized;
  EXPECT_EQ(recipe.ToString(), "mxfp8(backward_override=dequantized)");
}

TEST(RecipeTest, EveryFieldChangesTheFingerprint) {
  std::set<uint64_t> seen;
  for (const Format format : {Format::kNone, Format::kMxfp8, Format::kNvfp4}) {
    for (const BackwardOverride value :
         {BackwardOverride::kNone, BackwardOverride::kHighPrecision,
          BackwardOverride::kDequantized}) {
      for (const Fp8Format fp8_format : {Fp8Format::kE4M3, Fp8Format::kHybrid}) {
        for (const BlockGeometry geometry : {BlockGeometry::k1D, BlockGeometry::k2D}) {
          EXPECT_TRUE(
              seen.insert(Recipe{format, value, fp8_format, geometry}.Fingerprint()).second);
        }
      }
    }
  }
}

TEST(RecipeTest, ParsesFullAndShortNames) {
  EXPECT_EQ(*ParseFormat("mxfp8"), Format::kMxfp8);
  EXPECT_EQ(*ParseFormat("fp8_block"), Format::kFp8Block);
  EXPECT_EQ(*ParseFormat("block"), Format::kFp8Block);
  EXPECT_EQ(*ParseFormat("none"), Format::kNone);
  const absl::Status status = ParseFormat("int8").status();
  EXPECT_EQ(ReasonOf(status), Reason::kUnknownRecipe);
  EXPECT_EQ(status.message(),
            "recipe \"int8\" is not known; valid: none, mxfp8, nvfp4, fp8_block, fp8_current, "
            "fp8_delayed");
}

struct CheckCase {
  const char* name;
  Recipe recipe;
  std::optional<Reason> want;
};

TEST(RecipeTest, ChecksCombinations) {
  const CheckCase cases[] = {
      {"mxfp8 takes every override",
       {Format::kMxfp8, BackwardOverride::kDequantized},
       std::nullopt},
      {"high precision without override", {Format::kNone}, std::nullopt},
      {"an override needs quantization",
       {Format::kNone, BackwardOverride::kHighPrecision},
       Reason::kOverrideUnsupportedForRecipe},
      {"delayed scaling takes no override",
       {Format::kFp8Delayed, BackwardOverride::kHighPrecision},
       Reason::kOverrideUnsupportedForRecipe},
      {"a format of a later build", {Format::kNvfp4}, Reason::kNotSupported},
      {"2-D MXFP8 is of a later build",
       {Format::kMxfp8, BackwardOverride::kNone, Fp8Format::kE4M3, BlockGeometry::k2D},
       Reason::kNotSupported},
  };
  for (const CheckCase& test : cases) {
    SCOPED_TRACE(test.name);
    EXPECT_EQ(ReasonOf(CheckRecipe(test.recipe)), test.want);
  }
}

}  // namespace
}  // namespace planewise
