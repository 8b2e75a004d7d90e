#include "service/listen_address.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <string>

#include "core/base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/socket_directory.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(ListenAddressTest, WhatIsReadIsWrittenTheSame) {
  for (const char* text :
       {"unix:///run/p.sock", "127.0.0.1:50051", "localhost:0", "[::1]:65535"}) {
    PW_ASSERT_OK_AND_ASSIGN(const ListenAddress address, ParseListenAddress(text));
    EXPECT_EQ(address.ToString(), text);
  }
}

TEST(ListenAddressTest, HostsBeyondThisOneNeedTls) {
  for (const char* text : {"0.0.0.0:1", "[::]:1", "example.org:1", "127.0.0.2:1", ":1"}) {
    EXPECT_THAT(ParseListenAddress(text), HasReason(Reason::kNotSupported, HasSubstr("TLS")))
        << text;
  }
}

TEST(ListenAddressTest, SocketPathsHaveTheSystemsLimit) {
  PW_EXPECT_OK(ParseListenAddress("unix:///" + std::string(106, 'a')));
  EXPECT_THAT(ParseListenAddress("unix:///" + std::string(107, 'a')),
              HasReason(Reason::kInvalidRequest, AllOf(HasSubstr("108"), HasSubstr("107"))));
}

class SocketDirectoryTest : public testing::Test {
 protected:
  // Does not exist until the test makes it.
  std::string directory() const { return parent_.path() + "/d"; }

 private:
  const SocketDirectory parent_;
};

TEST_F(SocketDirectoryTest, IsMadePrivate) {
  PW_ASSERT_OK(PrepareSocketDirectory(directory() + "/p.sock"));
  struct stat info;
  ASSERT_EQ(stat(directory().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700u);
  PW_EXPECT_OK(PrepareSocketDirectory(directory() + "/p.sock"));
}

TEST_F(SocketDirectoryTest, ThatOthersCanEnterIsRefused) {
  ASSERT_EQ(mkdir(directory().c_str(), 0700), 0);
  ASSERT_EQ(chmod(directory().c_str(), 0711), 0);
  EXPECT_THAT(PrepareSocketDirectory(directory() + "/p.sock"),
              HasReason(Reason::kPermissionDenied,
                        AllOf(HasSubstr(directory()), HasSubstr("0711"), HasSubstr("chmod 700"))));
}

TEST_F(SocketDirectoryTest, WithoutAParentIsNotMade) {
  EXPECT_THAT(PrepareSocketDirectory(directory() + "/e/p.sock"),
              HasReason(Reason::kUnavailable, HasSubstr("/d/e")));
}

TEST_F(SocketDirectoryTest, AnotherDaemonKeepsItsSocket) {
  const std::string path = directory() + "/p.sock";
  PW_ASSERT_OK(PrepareSocketDirectory(path));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, path.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(listen(fd, 1), 0);
  EXPECT_THAT(PrepareSocketDirectory(path),
              HasReason(Reason::kAlreadyExists, AllOf(HasSubstr(path), HasSubstr("--listen"))));
  // The process ends, its socket file stays: the next daemon may take it.
  close(fd);
  PW_EXPECT_OK(PrepareSocketDirectory(path));
}

}  // namespace
}  // namespace planewise
