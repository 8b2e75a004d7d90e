#include "core/numeric/philox.h"

#include "gtest/gtest.h"

namespace planewise {
namespace {

// The vectors that the authors publish with their library Random123.
TEST(PhiloxTest, GivesThePublishedWords) {
  EXPECT_EQ(Philox({0, 0}, {0, 0, 0, 0}),
            (PhiloxBlock{0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8}));
  EXPECT_EQ(Philox({0xFFFFFFFF, 0xFFFFFFFF}, {0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}),
            (PhiloxBlock{0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD}));
  EXPECT_EQ(Philox({0xA4093822, 0x299F31D0}, {0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344}),
            (PhiloxBlock{0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1}));
}

static_assert(Philox({0, 0}, {0, 0, 0, 0})[0] == 0x6627E8D5, "usable in constant expressions");

}  // namespace
}  // namespace planewise
