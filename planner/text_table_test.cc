#include "planner/text_table.h"

#include "gtest/gtest.h"

namespace planewise {
namespace {

TEST(TextTableTest, LinesUpTextAndNumbers) {
  TextTable table({{"what"}, {"bytes", true}, {"why"}});
  table.AddRow({"row plane", "17301504", "fprop reads it"});
  table.AddRow({"bias", "8", ""});
  table.AddRow({"nothing"});
  EXPECT_EQ(table.ToString(),
            "what          bytes  why\n"
            "row plane  17301504  fprop reads it\n"
            "bias              8\n"
            "nothing\n");
}

TEST(TextTableTest, TitlesAlone) {
  EXPECT_EQ(TextTable({{"a"}, {"b", true}}).ToString(), "a  b\n");
}

}  // namespace
}  // namespace planewise
