#include "clients/cli/progress_bar.h"

#include "gtest/gtest.h"

namespace planewise {
namespace {

TEST(ProgressLineTest, ShowsShareBytesAndObject) {
  EXPECT_EQ(ProgressLine("quantize", "layers.0.q", 1 << 20, 2 << 20, 100),
            "quantize  [############            ]  50%  1.00 MiB of 2.00 MiB  layers.0.q");
}

TEST(ProgressLineTest, ShowsNoShareOfAnUnknownTotal) {
  EXPECT_EQ(ProgressLine("read", "layers.0.q", 3 << 20, kTotalUnknown, 100),
            "read      3.00 MiB so far  layers.0.q");
}

TEST(ProgressLineTest, NeverLongerThanTheTerminal) {
  EXPECT_EQ(ProgressLine("read", std::string(200, 'x'), 1, 2, 60).size(), 60u);
}

TEST(ProgressLineTest, WorkOfNoBytesIsDoneAndTooMuchIsAll) {
  EXPECT_NE(ProgressLine("verify", "", 0, 0, 100).find("100%"), std::string::npos);
  EXPECT_NE(ProgressLine("verify", "", 5, 4, 100).find("100%"), std::string::npos);
}

}  // namespace
}  // namespace planewise
