#include "core/base/byte_size.h"

#include <cstdint>
#include <limits>

#include "core/base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

using testing::HasSubstr;

struct Case {
  const char* text;
  int64_t size_bytes;
};

const Case kCases[] = {
    {"0B", 0},
    {"1B", 1},
    {"1000B", 1000},
    {"1KiB", 1024},
    {"1KB", 1000},
    {"512MiB", 536870912},
    {"512MB", 512000000},
    {"8 GiB", 8589934592},
    {"8GB", 8000000000},
    {"2TiB", 2199023255552},
    {"2TB", 2000000000000},
    {"9223372036854775807B", std::numeric_limits<int64_t>::max()},
};

TEST(ByteSizeTest, ReadsEveryUnit) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.text);
    EXPECT_THAT(ParseByteSize(c.text), IsOkAndHolds(c.size_bytes));
    EXPECT_THAT(ParseByteSize(ByteSizeText(c.size_bytes)), IsOkAndHolds(c.size_bytes));
  }
}

TEST(ByteSizeTest, WritesTheLargestUnitThatIsExact) {
  EXPECT_EQ(ByteSizeText(int64_t{64} << 20), "64MiB");
  EXPECT_EQ(ByteSizeText(1025), "1025B");
  EXPECT_EQ(ByteSizeText(0), "0B");
}

TEST(ByteSizeTest, RefusesWhatIsNoSize) {
  for (const char* text : {"", "8", "GiB", "-1GiB", "1.5GiB", "8gib", "8G", "8GiBs", " 8GiB",
                           "8388608TiB", "99999999999999999999B"}) {
    SCOPED_TRACE(text);
    EXPECT_THAT(ParseByteSize(text), HasReason(Reason::kInvalidRequest, HasSubstr("8GiB")));
  }
}

}  // namespace
}  // namespace planewise
