#include "core/recipe/recipe.h"

#include <cmath>
#include <functional>
#include <set>

#include "absl/strings/str_cat.h"
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
    for (const BackwardOverride value : {BackwardOverride::kNone, BackwardOverride::kHighPrecision,
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

// Stored manifests and clients' caches hold fingerprints: they must not move.
TEST(RecipeTest, FingerprintsAreStable) {
  EXPECT_EQ(DefaultRecipe(Format::kNone).Fingerprint(), 14813578972777709976u);
  EXPECT_EQ(DefaultRecipe(Format::kMxfp8).Fingerprint(), 16942015888805893348u);
}

struct FieldCase {
  const char* name;
  Format format;
  std::function<void(Recipe&)> change;
  const char* printed;
};

const FieldCase kFieldCases[] = {
    {"geometry", Format::kFp8Block, [](Recipe& r) { r.weight_geometry = BlockGeometry::k1D; },
     "weight_geometry=1d"},
    {"scales", Format::kFp8Block, [](Recipe& r) { r.power_of_two_scales = false; },
     "power_of_two_scales=off"},
    {"scales", Format::kFp8Current, [](Recipe& r) { r.power_of_two_scales = true; },
     "power_of_two_scales=on"},
    {"epsilon", Format::kFp8Current, [](Recipe& r) { r.amax_epsilon = 0.01f; },
     "amax_epsilon=0.00999999978"},
    {"margin", Format::kFp8Delayed, [](Recipe& r) { r.margin = -2; }, "margin=-2"},
    {"history", Format::kFp8Delayed, [](Recipe& r) { r.amax_history_length = 16; },
     "amax_history_length=16"},
    {"algorithm", Format::kFp8Delayed,
     [](Recipe& r) { r.amax_algorithm = AmaxAlgorithm::kMostRecent; },
     "amax_algorithm=most_recent"},
    {"Hadamard", Format::kNvfp4, [](Recipe& r) { r.hadamard = false; }, "hadamard=off"},
    {"rounding", Format::kNvfp4, [](Recipe& r) { r.stochastic_rounding = false; },
     "stochastic_rounding=off"},
};

TEST(RecipeTest, EveryFieldOfAFormatIsPrintedAndChangesTheFingerprint) {
  for (const FieldCase& test : kFieldCases) {
    SCOPED_TRACE(testing::Message() << Name(test.format) << " " << test.name);
    Recipe recipe = DefaultRecipe(test.format);
    const uint64_t before = recipe.Fingerprint();
    test.change(recipe);
    EXPECT_NE(recipe.Fingerprint(), before);
    EXPECT_EQ(recipe.ToString(), absl::StrCat(Name(test.format), "(", test.printed, ")"));
  }
}

TEST(RecipeTest, AFieldThatAFormatDoesNotHaveIsRefusedByName) {
  Recipe recipe = DefaultRecipe(Format::kMxfp8);
  recipe.amax_epsilon = 0.5f;
  const absl::Status status = CheckRecipe(recipe);
  EXPECT_EQ(ReasonOf(status), Reason::kInvalidRequest);
  EXPECT_EQ(status.message(), "recipe mxfp8 has no field amax_epsilon; it is 0.5; leave it out");
  for (const FieldCase& test : kFieldCases) {
    SCOPED_TRACE(test.name);
    Recipe none = DefaultRecipe(Format::kNone);
    Recipe changed = DefaultRecipe(test.format);
    test.change(changed);
    changed.format = Format::kNone;
    EXPECT_EQ(ReasonOf(CheckRecipe(none)), std::nullopt);
    EXPECT_EQ(ReasonOf(CheckRecipe(changed)), Reason::kInvalidRequest);
  }
}

struct RangeCase {
  const char* field;
  Format format;
  std::function<void(Recipe&)> change;
};

TEST(RecipeTest, ValuesOutsideTheirRangeAreRefusedByName) {
  const RangeCase cases[] = {
      {"amax_epsilon", Format::kFp8Block, [](Recipe& r) { r.amax_epsilon = -1e-30f; }},
      {"amax_epsilon", Format::kFp8Block, [](Recipe& r) { r.amax_epsilon = HUGE_VALF; }},
      {"amax_epsilon", Format::kFp8Current, [](Recipe& r) { r.amax_epsilon = NAN; }},
      {"margin", Format::kFp8Delayed, [](Recipe& r) { r.margin = kMarginMax + 1; }},
      {"margin", Format::kFp8Delayed, [](Recipe& r) { r.margin = -kMarginMax - 1; }},
      {"amax_history_length", Format::kFp8Delayed, [](Recipe& r) { r.amax_history_length = 0; }},
      {"amax_history_length", Format::kFp8Delayed,
       [](Recipe& r) { r.amax_history_length = kAmaxHistoryLengthMax + 1; }},
  };
  for (const RangeCase& test : cases) {
    Recipe recipe = DefaultRecipe(test.format);
    test.change(recipe);
    const absl::Status status = CheckRecipe(recipe);
    EXPECT_EQ(ReasonOf(status), Reason::kInvalidRequest) << recipe;
    EXPECT_NE(status.message().find(absl::StrCat(test.field, " is ")), std::string::npos) << status;
  }
}

TEST(RecipeTest, ParsesAmaxAlgorithms) {
  EXPECT_EQ(*ParseAmaxAlgorithm("max"), AmaxAlgorithm::kMax);
  EXPECT_EQ(*ParseAmaxAlgorithm("most_recent"), AmaxAlgorithm::kMostRecent);
  EXPECT_EQ(ParseAmaxAlgorithm("last").status().message(),
            "amax_algorithm \"last\" is not known; valid: max, most_recent");
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
      {"nvfp4", DefaultRecipe(Format::kNvfp4), std::nullopt},
      {"2-D MXFP8",
       {Format::kMxfp8, BackwardOverride::kNone, Fp8Format::kE4M3, BlockGeometry::k2D},
       std::nullopt},
  };
  for (const CheckCase& test : cases) {
    SCOPED_TRACE(test.name);
    EXPECT_EQ(ReasonOf(CheckRecipe(test.recipe)), test.want);
  }
}

}  // namespace
}  // namespace planewise
