#include "tests/testing/raw_stream.h"

#include <vector>

#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"
#include "gtest/gtest.h"

namespace planewise {

RawAnswer ExchangeRaw(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                      const std::string& request) {
  grpc::GenericStub stub(channel);
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  const auto wait = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  const auto call = stub.PrepareCall(&context, method, &queue);
  call->StartCall(nullptr);
  EXPECT_TRUE(wait());
  const grpc::Slice slice(request);
  call->WriteLast(grpc::ByteBuffer(&slice, 1), grpc::WriteOptions(), nullptr);
  EXPECT_TRUE(wait());
  grpc::ByteBuffer message;
  call->Read(&message, nullptr);
  EXPECT_TRUE(wait());
  RawAnswer answer;
  std::vector<grpc::Slice> slices;
  message.Dump(&slices);
  for (const grpc::Slice& part : slices) {
    answer.bytes.append(reinterpret_cast<const char*>(part.begin()), part.size());
  }
  call->Finish(&answer.status, nullptr);
  EXPECT_TRUE(wait());
  queue.Shutdown();
  return answer;
}

}  // namespace planewise
