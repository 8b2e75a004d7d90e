// Tools that know no .proto file, as grpcurl, find the services by reflection.

#include <string>
#include <vector>

#include "clients/cpp/daemon_channel.h"
#include "gmock/gmock.h"
#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/byte_buffer.h"
#include "gtest/gtest.h"
#include "tests/e2e/test_daemon.h"

namespace planewise {
namespace {

using testing::HasSubstr;

// The answer, as bytes, to grpc.reflection.v1alpha's `list_services: ""`.
std::string ListServices(const std::string& address) {
  grpc::GenericStub stub(OpenDaemonChannel(address));
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  const auto wait = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  const auto call = stub.PrepareCall(
      &context, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", &queue);
  call->StartCall(nullptr);
  EXPECT_TRUE(wait());
  // Field 7, length-delimited, empty.
  const grpc::Slice request(std::string("\x3a\x00", 2));
  call->Write(grpc::ByteBuffer(&request, 1), nullptr);
  EXPECT_TRUE(wait());
  grpc::ByteBuffer answer;
  call->Read(&answer, nullptr);
  EXPECT_TRUE(wait());
  std::vector<grpc::Slice> slices;
  answer.Dump(&slices);
  std::string text;
  for (const grpc::Slice& slice : slices) {
    text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  context.TryCancel();
  grpc::Status status;
  call->Finish(&status, nullptr);
  wait();
  queue.Shutdown();
  return text;
}

TEST(ReflectionTest, ListsTheServices) {
  const TestDaemon daemon;
  const std::string services = ListServices(daemon.socket_address());
  for (const char* name : {"planewise.v1.Models", "planewise.v1.Sessions", "planewise.v1.Server",
                           "grpc.health.v1.Health"}) {
    EXPECT_THAT(services, HasSubstr(name));
  }
}

}  // namespace
}  // namespace planewise
