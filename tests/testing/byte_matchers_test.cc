#include "tests/testing/byte_matchers.h"

#include "gtest/gtest.h"

namespace planewise {
namespace {

using Bytes = std::vector<uint8_t>;

std::string Explain(const Bytes& observed, const Bytes& expected) {
  testing::StringMatchResultListener listener;
  testing::ExplainMatchResult(SameBytes(expected), observed, &listener);
  return listener.str();
}

TEST(ByteMatchersTest, SaysWhereBytesPart) {
  EXPECT_THAT((Bytes{1, 2, 3}), SameBytes(Bytes{1, 2, 3}));
  EXPECT_THAT(Bytes{}, SameBytes(Bytes{}));
  EXPECT_THAT((Bytes{1, 2}), testing::Not(SameBytes(Bytes{1, 3})));
  EXPECT_EQ(Explain({1, 2, 3, 4}, {1, 7, 3, 9}),
            "which differs in 2 of 4 bytes, first at 1: 0x02, expected 0x07");
  EXPECT_EQ(Explain({1, 2}, {1}), "which are 2 bytes, expected 1");
}

}  // namespace
}  // namespace planewise
