#include "planner/memory_report.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/hf_config_reader.h"
#include "planner/published_configs.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TensorInventory MiniLm() { return *BuildInventory(*ReadHfConfig(kMiniLm.config_json)); }

PlanOptions Mxfp8(BackwardOverride backward_override) {
  PlanOptions options;
  options.recipe = DefaultRecipe(Format::kMxfp8);
  options.recipe.backward_override = backward_override;
  return options;
}

TEST(MemoryReportTest, SaysWhatTheRecipeCostsAndForbids) {
  const ModelPlan plan = *PlanModel(MiniLm(), Mxfp8(BackwardOverride::kDequantized));
  EXPECT_THAT(
      PlanTable(plan),
      AllOf(HasSubstr("BertModel: 37 linear layers hosted, 10785408 parameters; 11927808 "
                      "parameters stay with the trainer\n"
                      "recipe mxfp8(backward_override=dequantized), plane policy AUTO, "
                      "backward_enabled=true, trainable=false\n"
                      "planes: row (AUTO: under backward_override=dequantized every GEMM reads "
                      "the row plane)\n"
                      "against both planes this saves 10.59 MiB (11100672 B)\n"
                      "forbids backward_override=none: its dgrad"),
            HasSubstr("row plane: payload     10764288   10.27 MiB  sum of out * in\n"
                      "row plane: scales        336384  328.50 KiB  sum of up(out, 128) * "
                      "up(in/32, 4)\n"
                      "bias                      42240   41.25 KiB  sum of out * 2\n"
                      "= persistent           11142912   10.63 MiB  the lines above\n"),
            HasSubstr("saved operands: none of X, because dW is not wanted\n"),
            HasSubstr("embeddings.word_embeddings.weight"),
            HasSubstr("26 tensors, the first: embeddings.LayerNorm.weight"),
            Not(HasSubstr("column plane:"))));
}

TEST(MemoryReportTest, SumsAreTheSumsOfTheirLines) {
  PlanOptions options = Mxfp8(BackwardOverride::kNone);
  options.trainable = true;
  options.load = {.sessions = 3,
                  .tokens = 100,
                  .input_window_bytes = 1 << 20,
                  .result_budget_bytes = 1 << 10,
                  .gemm_workspace_bytes = 4096};
  int64_t sum = 0;
  for (const ReportRow& row : ReportRows(*PlanModel(MiniLm(), options))) {
    EXPECT_FALSE(row.formula.empty()) << row.what;
    if (row.what == "= persistent" || row.what == "= while serving") {
      EXPECT_EQ(row.bytes, sum) << row.what;
    } else {
      sum += row.bytes;
    }
    if (row.what == "= while serving") break;
  }
}

TEST(MemoryReportTest, ShowsSavedOperandsOfEveryOverride) {
  PlanOptions options = Mxfp8(BackwardOverride::kNone);
  options.trainable = true;
  options.load.sessions = 1;
  options.load.tokens = 128;
  EXPECT_THAT(PlanTable(*PlanModel(MiniLm(), options)),
              HasSubstr("saved operands of one session, 128 tokens    bytes  bytes/token  kept of "
                        "X\n"
                        "backward_override=none                     2787840        21780  column "
                        "plane\n"
                        "backward_override=high_precision           5406720        42240  X "
                        "itself\n"
                        "backward_override=dequantized              2787840        21780  row "
                        "plane\n"));
}

TEST(MemoryReportTest, HasALinePerLayer) {
  const std::string table = LayerTable(*PlanModel(MiniLm(), Mxfp8(BackwardOverride::kNone)));
  EXPECT_THAT(table, HasSubstr("encoder.layer.0.intermediate.dense      [1536, 384]  row+column  "
                               "1179648   36864  3072  1219584\n"));
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 1 + 37);
}

TEST(MemoryReportTest, TheMatrixExplainsItsMarks) {
  const std::string table =
      WhatIfTable(WhatIf(MiniLm(), Mxfp8(BackwardOverride::kDequantized)));
  EXPECT_THAT(table, HasSubstr("\nmxfp8        dequantized        AUTO            11142912"));
  EXPECT_THAT(table,
              HasSubstr("\nmxfp8        none               ROW_ONLY        11142912               "
                        "0    3538944  14681856  refused      [3]\n"));
  EXPECT_THAT(table, HasSubstr("14345620  hosted only"));
  EXPECT_THAT(table, HasSubstr("\n[1] backward_override=high_precision without quantization"));
  EXPECT_THAT(table, HasSubstr("\n[3] backward_override=none: its dgrad reads the column plane"));
}

TEST(MemoryReportTest, AShortfallIsSpelledOut) {
  const TensorInventory inventory = MiniLm();
  const PlanOptions options = Mxfp8(BackwardOverride::kNone);
  EXPECT_EQ(FitText(*CheckFit(inventory, options, 1 << 30)),
            "fits: needs 24.59 MiB (25782528 B) of 1.00 GiB (1073741824 B)\n");
  EXPECT_THAT(FitText(*CheckFit(inventory, options, 20'000'000)),
              HasSubstr("does not fit: needs 24.59 MiB (25782528 B), available 19.07 MiB (20000000 "
                        "B), short of 5.51 MiB (5782528 B)\n"
                        "would fit: backward_override=high_precision (14.00 MiB (14681856 B)); "
                        "forbids backward_override=none"));
  EXPECT_THAT(FitText(*CheckFit(inventory, options, 1)), HasSubstr("nothing else"));
}

TEST(MemoryReportTest, SizesArePowersOf1024) {
  struct Case {
    int64_t bytes;
    const char* text;
  };
  const Case cases[] = {{0, "0 B"},
                        {1023, "1023 B"},
                        {1024, "1.00 KiB (1024 B)"},
                        {34'603'008, "33.00 MiB (34603008 B)"},
                        {int64_t{3} << 30, "3.00 GiB (3221225472 B)"},
                        {int64_t{5} << 50, "5120.00 TiB (5629499534213120 B)"},
                        {-2048, "-2.00 KiB (-2048 B)"}};
  for (const Case& test : cases) EXPECT_EQ(FormatBytes(test.bytes), test.text);
  EXPECT_EQ(FormatSize(34'603'008), "33.00 MiB");
}

}  // namespace
}  // namespace planewise
