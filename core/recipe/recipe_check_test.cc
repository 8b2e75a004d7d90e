#include "core/recipe/recipe_check.h"

#include "core/base/error.h"
#include "gtest/gtest.h"

namespace planewise {
namespace {

const Recipe kMxfp8 = DefaultRecipe(Format::kMxfp8);

TEST(RecipeCheckTest, NamesTheViolatedRuleAndThePadding) {
  const absl::Status status = CheckWeightShape(kMxfp8, "x", {896, 712});
  EXPECT_EQ(ReasonOf(status), Reason::kShapeNotDivisible);
  EXPECT_EQ(status.message(),
            "weight \"x\": in_features 712 % 32 = 8; mxfp8 needs a multiple of 32; pad to 736");
  const auto details = DetailsOf(status);
  ASSERT_TRUE(details.has_value());
  EXPECT_EQ(*details->Find("value"), "712");
  EXPECT_EQ(*details->Find("modulus"), "32");
  EXPECT_EQ(*details->Find("remainder"), "8");
  EXPECT_EQ(*details->Find("paddedTo"), "736");
}

// Field report 4 (TransformerEngine#688): the message also blamed a dimension that
// was fine.
TEST(RecipeCheckTest, ListsOnlyTheRulesThatAreBroken) {
  struct Case {
    MatrixShape shape;
    std::vector<std::string> broken;
  };
  const Case cases[] = {
      {{3072, 767}, {"in_features 767 % 32 = 31; mxfp8 needs a multiple of 32; pad to 768"}},
      {{16, 64}, {"out_features 16 % 32 = 16; mxfp8 needs a multiple of 32; pad to 32"}},
      {{33, 1},
       {"out_features 33 % 32 = 1; mxfp8 needs a multiple of 32; pad to 64",
        "in_features 1 % 32 = 1; mxfp8 needs a multiple of 32; pad to 32"}},
  };
  for (const Case& test : cases) {
    SCOPED_TRACE(testing::Message() << test.shape);
    const auto details = DetailsOf(CheckWeightShape(kMxfp8, "w", test.shape));
    ASSERT_TRUE(details.has_value());
    ASSERT_EQ(details->violations.size(), test.broken.size());
    for (size_t i = 0; i < test.broken.size(); ++i) {
      EXPECT_EQ(details->violations[i],
                (Violation{Reason::kShapeNotDivisible, "w", test.broken[i]}));
    }
  }
}

TEST(RecipeCheckTest, AcceptsWhatFits) {
  EXPECT_TRUE(CheckWeightShape(kMxfp8, "w", {32, 64}).ok());
  EXPECT_TRUE(CheckWeightShape(kMxfp8, "w", {0, 64}).ok());
  EXPECT_TRUE(CheckWeightShape(DefaultRecipe(Format::kNone), "w", {33, 1}).ok());
}

TEST(RecipeCheckTest, OneDimensionalBlocksCannotBeTurned) {
  for (const Format format : {Format::kMxfp8, Format::kNvfp4, Format::kFp8Block}) {
    EXPECT_FALSE(ColumnDerivableFromRow(format, BlockGeometry::k1D)) << Name(format);
    EXPECT_TRUE(ColumnDerivableFromRow(format, BlockGeometry::k2D)) << Name(format);
  }
  for (const Format format : {Format::kNone, Format::kFp8Current, Format::kFp8Delayed}) {
    EXPECT_TRUE(ColumnDerivableFromRow(format, BlockGeometry::k1D)) << Name(format);
  }
}

}  // namespace
}  // namespace planewise
