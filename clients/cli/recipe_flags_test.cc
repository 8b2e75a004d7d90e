#include "clients/cli/recipe_flags.h"

#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "core/recipe/recipe.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const char* NoEnvironment(const char*) { return nullptr; }

// What a verb with a default recipe, or none, makes of a command line.
absl::StatusOr<Recipe> Resolve(const std::string& arguments, const std::string& default_format = "",
                               const Recipe& model = Recipe()) {
  CLI::App app;
  RecipeFlags flags;
  flags.AddTo(app, default_format);
  app.parse(arguments, false);
  PW_RETURN_IF_ERROR(flags.CheckSpelling(NoEnvironment));
  return flags.Resolve(NoEnvironment, model);
}

struct FlagCase {
  const char* arguments;
  const char* recipe;
};

TEST(RecipeFlagsTest, EveryFieldHasAFlag) {
  const FlagCase cases[] = {
      {"--recipe mxfp8 --fp8-format hybrid", "mxfp8(fp8_format=hybrid)"},
      {"--recipe nvfp4 --weight-block-dim 1", "nvfp4(weight_geometry=1d)"},
      {"--recipe block --no-power-of-two-scales", "fp8_block(power_of_two_scales=off)"},
      {"--recipe fp8_current --power-of-two-scales --amax-epsilon 0.5",
       "fp8_current(power_of_two_scales=on, amax_epsilon=0.5)"},
      {"--recipe delayed --margin -2 --amax-history-length 16 --amax-algorithm most_recent",
       "fp8_delayed(margin=-2, amax_history_length=16, amax_algorithm=most_recent)"},
      {"--recipe nvfp4 --no-hadamard --no-stochastic-rounding",
       "nvfp4(hadamard=off, stochastic_rounding=off)"},
  };
  for (const FlagCase& test : cases) {
    PW_ASSERT_OK_AND_ASSIGN(const Recipe recipe, Resolve(test.arguments));
    EXPECT_EQ(recipe.ToString(), test.recipe);
  }
}

TEST(RecipeFlagsTest, AFlagOfAFieldThatTheFormatDoesNotHaveIsRefused) {
  const FlagCase cases[] = {
      {"--margin 0", "recipe.margin: recipe mxfp8"},
      {"--no-hadamard", "recipe.hadamard: recipe mxfp8"},
      {"--recipe none --weight-block-dim 1", "recipe.weight_block_dim: recipe none"},
      {"--recipe nvfp4 --power-of-two-scales", "recipe.power_of_two_scales: recipe nvfp4"},
  };
  for (const FlagCase& test : cases) {
    EXPECT_THAT(Resolve(test.arguments, "mxfp8"),
                HasReason(Reason::kInvalidRequest, HasSubstr(test.recipe)))
        << test.arguments;
  }
  EXPECT_THAT(Resolve("--weight-block-dim 3", "mxfp8"),
              HasReason(Reason::kInvalidRequest, HasSubstr("1 or 2")));
  EXPECT_THAT(Resolve("--recipe fp8_current --amax-epsilon -1"),
              HasReason(Reason::kInvalidRequest, HasSubstr("amax_epsilon is -1")));
}

TEST(RecipeFlagsTest, SpellingsAreCheckedWithoutAFormat) {
  EXPECT_THAT(Resolve("--fp8-format e5m2"),
              HasReason(Reason::kInvalidRequest, AllOf(HasSubstr("e5m2"), HasSubstr("hybrid"))));
  EXPECT_THAT(Resolve("--amax-algorithm last"),
              HasReason(Reason::kInvalidRequest, HasSubstr("most_recent")));
}

// A switch that names an override alone must not change how weights are quantized.
TEST(RecipeFlagsTest, WithoutARecipeFieldsAreTheModels) {
  Recipe model = DefaultRecipe(Format::kMxfp8);
  model.fp8_format = Fp8Format::kHybrid;
  model.backward_override = BackwardOverride::kDequantized;
  Recipe target = model;
  target.backward_override = BackwardOverride::kHighPrecision;
  EXPECT_THAT(Resolve("--backward-override high_precision", "", model), IsOkAndHolds(target));
  target.backward_override = BackwardOverride::kNone;
  EXPECT_THAT(Resolve("", "", model), IsOkAndHolds(target));
  target.fp8_format = Fp8Format::kE4M3;
  EXPECT_THAT(Resolve("--fp8-format e4m3", "", model), IsOkAndHolds(target));
  EXPECT_THAT(Resolve("--recipe mxfp8", "", model), IsOkAndHolds(target));
}

}  // namespace
}  // namespace planewise
