#include "proto/address/default_address.h"

#include "gtest/gtest.h"

namespace planewise {
namespace {

TEST(DefaultAddressTest, IsInTheUsersRuntimeFolderIfThereIsOne) {
  EXPECT_EQ(DefaultAddress("/run/user/1000", 1000),
            "unix:///run/user/1000/planewise/planewise.sock");
  EXPECT_EQ(DefaultAddress("", 1000), "unix:///tmp/planewise-1000/planewise.sock");
  EXPECT_EQ(DefaultAddress("run", 0), "unix:///tmp/planewise-0/planewise.sock");
}

}  // namespace
}  // namespace planewise
