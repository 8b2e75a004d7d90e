#include "planner/plane_decision.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using enum BackwardOverride;

Recipe Mxfp8(BackwardOverride backward_override) {
  Recipe recipe = DefaultRecipe(Format::kMxfp8);
  recipe.backward_override = backward_override;
  return recipe;
}

PlaneQuestion Question(Recipe recipe) {
  PlaneQuestion question;
  question.recipe = recipe;
  question.shape = {4096, 4096};
  return question;
}

int64_t PlannedBytes(const PlaneQuestion& question) {
  const PlaneDecision decision = *DecidePlanes(question);
  return TotalBytes(*LayoutsOf(decision, question.recipe, question.shape, question.nominal));
}

struct Case {
  const char* name;
  BackwardOverride backward_override;
  PlanePolicy policy;
  bool backward_enabled;
  std::vector<BackwardOverride> future_modes;
  bool column;
  const char* why;
};

TEST(PlaneDecisionTest, ColumnFollowsTheRule) {
  const Case cases[] = {
      {"a quantized backward reads it", kNone, PlanePolicy::kAuto, true, {}, true,
       "AUTO: backward_override=none reads the column plane in dgrad"},
      {"dequantized does not", kDequantized, PlanePolicy::kAuto, true, {}, false,
       "AUTO: under backward_override=dequantized every GEMM reads the row plane"},
      {"nor does high_precision", kHighPrecision, PlanePolicy::kAuto, true, {}, false,
       "AUTO: under backward_override=high_precision every GEMM reads the row plane"},
      {"inference reads no column", kNone, PlanePolicy::kAuto, false, {}, false,
       "AUTO: backward_enabled=false, only fprop runs"},
      {"a future mode keeps it", kDequantized, PlanePolicy::kAuto, true, {kHighPrecision, kNone},
       true,
       "AUTO: the declared future mode backward_override=none reads the column plane in dgrad"},
      {"a future mode that reads the row plane", kDequantized, PlanePolicy::kAuto, true,
       {kHighPrecision}, false,
       "AUTO: under backward_override=dequantized every GEMM reads the row plane"},
      {"no future mode runs a backward that is off", kDequantized, PlanePolicy::kAuto, false,
       {kNone}, false, "AUTO: backward_enabled=false, only fprop runs"},
      {"both, asked for", kDequantized, PlanePolicy::kBoth, false, {}, true, "BOTH: asked for"},
      {"row only, asked for", kNone, PlanePolicy::kRowOnly, true, {kNone}, false,
       "ROW_ONLY: asked for"},
  };
  for (const Case& test : cases) {
    SCOPED_TRACE(test.name);
    PlaneQuestion question = Question(Mxfp8(test.backward_override));
    question.policy = test.policy;
    question.backward_enabled = test.backward_enabled;
    question.future_modes = test.future_modes;
    PW_ASSERT_OK_AND_ASSIGN(const PlaneDecision decision, DecidePlanes(question));
    EXPECT_TRUE(decision.row);
    EXPECT_EQ(decision.column, test.column);
    EXPECT_EQ(decision.policy, test.policy);
    EXPECT_EQ(decision.why, test.why);
    EXPECT_EQ(decision.saved_bytes, test.column ? 0 : 17'301'504);
  }
}

TEST(PlaneDecisionTest, BytesOfALargeWeight) {
  EXPECT_EQ(PlannedBytes(Question(Mxfp8(kNone))), 34'603'008);
  EXPECT_EQ(PlannedBytes(Question(Mxfp8(kDequantized))), 17'301'504);
  EXPECT_EQ(PlannedBytes(Question(Mxfp8(kHighPrecision))), 17'301'504);
  EXPECT_EQ(PlannedBytes(Question(DefaultRecipe(Format::kNone))), 4096 * 4096 * 2);
}

TEST(PlaneDecisionTest, SaysWhatItForbids) {
  PlaneQuestion question = Question(Mxfp8(kNone));
  EXPECT_THAT(DecidePlanes(question)->forbids, IsEmpty());
  question.policy = PlanePolicy::kRowOnly;
  EXPECT_THAT(DecidePlanes(question)->forbids,
              ElementsAre(HasSubstr("backward_override=none: its dgrad reads the column plane")));
  question.backward_enabled = false;
  EXPECT_THAT(DecidePlanes(question)->forbids,
              ElementsAre("any backward: backward_enabled=false",
                          HasSubstr("backward_override=none")));
  question.policy = PlanePolicy::kBoth;
  EXPECT_THAT(DecidePlanes(question)->forbids,
              ElementsAre("any backward: backward_enabled=false"));
}

TEST(PlaneDecisionTest, HighPrecisionKeepsTheMatrixWhateverThePolicy) {
  for (const PlanePolicy policy :
       {PlanePolicy::kAuto, PlanePolicy::kBoth, PlanePolicy::kRowOnly}) {
    PlaneQuestion question = Question(DefaultRecipe(Format::kNone));
    question.policy = policy;
    PW_ASSERT_OK_AND_ASSIGN(const PlaneDecision decision, DecidePlanes(question));
    EXPECT_FALSE(decision.column);
    EXPECT_EQ(decision.saved_bytes, 0);
    EXPECT_THAT(decision.forbids, IsEmpty());
    PW_ASSERT_OK_AND_ASSIGN(const auto layouts,
                            LayoutsOf(decision, question.recipe, question.shape, DType::kBF16));
    ASSERT_EQ(layouts.size(), 1u);
    EXPECT_EQ(layouts[0].kind, PlaneKind::kHighPrecision);
  }
}

TEST(PlaneDecisionTest, LayoutsAreRowBeforeColumn) {
  const PlaneQuestion question = Question(Mxfp8(kNone));
  PW_ASSERT_OK_AND_ASSIGN(const auto layouts, LayoutsOf(*DecidePlanes(question), question.recipe,
                                                        {64, 32}, DType::kBF16));
  ASSERT_EQ(layouts.size(), 2u);
  EXPECT_EQ(layouts[0].kind, PlaneKind::kRow);
  EXPECT_EQ(layouts[1].kind, PlaneKind::kColumn);
  EXPECT_EQ(TotalBytes(layouts), 2 * 64 * 32 + 128 * 4 + 4 * 128);
}

TEST(PlaneDecisionTest, RefusesWhatHasNoLayout) {
  PlaneQuestion question = Question(Mxfp8(kDequantized));
  question.shape = {-1, 32};
  EXPECT_THAT(DecidePlanes(question), HasReason(Reason::kInvalidRequest));
}

}  // namespace
}  // namespace planewise
