#include "planner/what_if.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/hf_config_reader.h"
#include "planner/published_configs.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using enum BackwardOverride;

TensorInventory MiniLm() { return *BuildInventory(*ReadHfConfig(kMiniLm.config_json)); }

PlanOptions Mxfp8(BackwardOverride backward_override) {
  PlanOptions options;
  options.recipe = DefaultRecipe(Format::kMxfp8);
  options.recipe.backward_override = backward_override;
  return options;
}

const WhatIfCell& CellAt(const std::vector<WhatIfCell>& cells, Format format,
                         BackwardOverride backward_override, PlanePolicy policy) {
  return *std::find_if(cells.begin(), cells.end(), [&](const WhatIfCell& cell) {
    return cell.recipe.format == format && cell.policy == policy &&
           cell.recipe.backward_override == backward_override;
  });
}

constexpr int64_t kRowOnlyBytes = 11'142'912;
constexpr int64_t kBothBytes = 22'243'584;
constexpr int64_t kLoadPeakBytes = 3'538'944;

struct CellCase {
  Format format;
  BackwardOverride backward_override;
  PlanePolicy policy;
  bool legal;
  int64_t persistent_bytes;
  bool backward_runs;
  size_t forbids;
};

TEST(WhatIfTest, CoversTheMatrix) {
  const CellCase cases[] = {
      {Format::kNone, kNone, PlanePolicy::kAuto, true, 10'785'408 * 2, true, 0},
      {Format::kNone, kNone, PlanePolicy::kRowOnly, true, 10'785'408 * 2, true, 0},
      {Format::kNone, kDequantized, PlanePolicy::kAuto, false, 0, false, 0},
      {Format::kMxfp8, kNone, PlanePolicy::kAuto, true, kBothBytes, true, 0},
      {Format::kMxfp8, kNone, PlanePolicy::kBoth, true, kBothBytes, true, 0},
      {Format::kMxfp8, kNone, PlanePolicy::kRowOnly, true, kRowOnlyBytes, false, 1},
      {Format::kMxfp8, kHighPrecision, PlanePolicy::kAuto, true, kRowOnlyBytes, true, 1},
      {Format::kMxfp8, kDequantized, PlanePolicy::kAuto, true, kRowOnlyBytes, true, 1},
      {Format::kMxfp8, kDequantized, PlanePolicy::kBoth, true, kBothBytes, true, 0},
  };
  const std::vector<WhatIfCell> cells = WhatIf(MiniLm(), Mxfp8(kNone));
  EXPECT_THAT(cells, SizeIs(6 * 3 * 3));
  for (const CellCase& test : cases) {
    SCOPED_TRACE(testing::Message() << Name(test.format) << " " << Name(test.backward_override)
                                    << " " << Name(test.policy));
    const WhatIfCell& cell = CellAt(cells, test.format, test.backward_override, test.policy);
    EXPECT_EQ(cell.legal.ok(), test.legal);
    EXPECT_EQ(cell.persistent_bytes, test.persistent_bytes);
    EXPECT_EQ(cell.backward_runs, test.backward_runs);
    EXPECT_EQ(cell.computes, test.legal);
    EXPECT_THAT(cell.forbids, SizeIs(test.forbids));
    if (test.legal) {
      EXPECT_EQ(cell.required_bytes, cell.persistent_bytes + kLoadPeakBytes);
    }
  }
}

TEST(WhatIfTest, FormatsThatAreOnlyHostedHaveBytesAndNoBackward) {
  const std::vector<WhatIfCell> cells = WhatIf(MiniLm(), Mxfp8(kNone));
  for (const Format format :
       {Format::kNvfp4, Format::kFp8Block, Format::kFp8Current, Format::kFp8Delayed}) {
    const WhatIfCell& cell = CellAt(cells, format, kNone, PlanePolicy::kBoth);
    PW_EXPECT_OK(cell.legal);
    EXPECT_GT(cell.persistent_bytes, 0);
    EXPECT_FALSE(cell.computes);
    EXPECT_FALSE(cell.backward_runs);
  }
}

// Reports of plans in which FP8 needed more than BF16: the matrix shows which
// line grows.
TEST(WhatIfTest, ShowsThatBothPlanesCostMoreThanBf16) {
  const std::vector<WhatIfCell> cells = WhatIf(MiniLm(), Mxfp8(kNone));
  EXPECT_GT(CellAt(cells, Format::kMxfp8, kNone, PlanePolicy::kAuto).persistent_bytes,
            CellAt(cells, Format::kNone, kNone, PlanePolicy::kAuto).persistent_bytes);
}

TEST(WhatIfTest, FitsToTheByte) {
  PW_ASSERT_OK_AND_ASSIGN(const FitReport fits,
                          CheckFit(MiniLm(), Mxfp8(kNone), kBothBytes + kLoadPeakBytes));
  EXPECT_TRUE(fits.fits);
  EXPECT_EQ(fits.short_bytes, 0);
  EXPECT_THAT(fits.choices, IsEmpty());
  PW_EXPECT_OK(FitStatus(fits, "model \"a\""));

  PW_ASSERT_OK_AND_ASSIGN(const FitReport tight,
                          CheckFit(MiniLm(), Mxfp8(kNone), kBothBytes + kLoadPeakBytes - 1));
  EXPECT_FALSE(tight.fits);
  EXPECT_EQ(tight.short_bytes, 1);
}

TEST(WhatIfTest, OffersTheNearestChoicesWhoseBackwardRuns) {
  PW_ASSERT_OK_AND_ASSIGN(const FitReport report, CheckFit(MiniLm(), Mxfp8(kNone), 20'000'000));
  std::vector<std::string> changes;
  for (const FittingChoice& choice : report.choices) changes.push_back(choice.change);
  // With ROW_ONLY beside an override nothing more would be saved.
  EXPECT_THAT(changes, ElementsAre("backward_override=high_precision",
                                   "backward_override=dequantized"));
  EXPECT_EQ(report.choices[0].required_bytes, kRowOnlyBytes + kLoadPeakBytes);
  EXPECT_THAT(report.choices[0].forbids, SizeIs(1));

  // Under inference no backward is wanted, so ROW_ONLY under none is a choice.
  PlanOptions inference = Mxfp8(kNone);
  inference.backward_enabled = false;
  inference.policy = PlanePolicy::kBoth;
  PW_ASSERT_OK_AND_ASSIGN(const FitReport rows, CheckFit(MiniLm(), inference, 20'000'000));
  EXPECT_EQ(rows.choices[0].change, "plane_policy=AUTO");
}

TEST(WhatIfTest, OffersFewerSessionsAndTokens) {
  PlanOptions options = Mxfp8(kDequantized);
  options.trainable = true;
  options.load.sessions = 8;
  options.load.tokens = 1024;
  PW_ASSERT_OK_AND_ASSIGN(const ModelPlan plan, PlanModel(MiniLm(), options));
  const int64_t per_session = plan.totals.saved_operand_bytes / 8;
  const int64_t limit = plan.totals.persistent_bytes + 3 * per_session + 1;
  PW_ASSERT_OK_AND_ASSIGN(const FitReport report, CheckFit(MiniLm(), options, limit));
  ASSERT_FALSE(report.fits);
  const FittingChoice& sessions = report.choices[report.choices.size() - 2];
  EXPECT_EQ(sessions.change, "sessions=3");
  EXPECT_EQ(sessions.required_bytes, plan.totals.persistent_bytes + 3 * per_session);
  // Codes are a byte per feature and token; scales grow in steps of 128 tokens,
  // so 8 sessions of 384 tokens are as many bytes as 3 of 1024.
  EXPECT_EQ(report.choices.back().change, "tokens=384");
  EXPECT_LE(report.choices.back().required_bytes, limit);
}

TEST(WhatIfTest, AShortfallNamesBytesAndChoices) {
  PW_ASSERT_OK_AND_ASSIGN(const FitReport report, CheckFit(MiniLm(), Mxfp8(kNone), 20'000'000));
  const absl::Status status = FitStatus(report, "model \"a\"");
  EXPECT_THAT(status,
              HasReason(Reason::kMemoryShortfall,
                        HasSubstr("model \"a\": needs 25782528 bytes, 20000000 are available "
                                  "(short of 5782528); would fit: "
                                  "backward_override=high_precision (14681856 bytes)")));
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(*DetailsOf(status)->Find("bytesShort"), "5782528");

  PW_ASSERT_OK_AND_ASSIGN(const FitReport hopeless, CheckFit(MiniLm(), Mxfp8(kNone), 1000));
  EXPECT_THAT(hopeless.choices, IsEmpty());
  EXPECT_THAT(FitStatus(hopeless, "model \"a\""),
              HasReason(Reason::kMemoryShortfall, HasSubstr("no other recipe")));
}

}  // namespace
}  // namespace planewise
