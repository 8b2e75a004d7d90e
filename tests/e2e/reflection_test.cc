// Tools that know no .proto file, as grpcurl, find the services by reflection.

#include <string>

#include "clients/cpp/daemon_channel.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/test_daemon.h"
#include "tests/testing/raw_stream.h"

namespace planewise {
namespace {

using testing::HasSubstr;

TEST(ReflectionTest, ListsTheServices) {
  const TestDaemon daemon;
  // `list_services: ""`: field 7, length-delimited, empty.
  const RawAnswer answer = ExchangeRaw(
      OpenDaemonChannel(daemon.socket_address()),
      "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", std::string("\x3a\x00", 2));
  EXPECT_TRUE(answer.status.ok()) << answer.status.error_message();
  for (const char* name : {"planewise.v1.Models", "planewise.v1.Sessions", "planewise.v1.Server",
                           "grpc.health.v1.Health"}) {
    EXPECT_THAT(answer.bytes, HasSubstr(name));
  }
}

}  // namespace
}  // namespace planewise
