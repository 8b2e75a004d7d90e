#include "tests/bench/bare_stream.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "grpcpp/client_context.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/client_callback.h"
#include "grpcpp/support/slice.h"

namespace planewise {
namespace {

class Sink final : public grpc::ServerGenericBidiReactor {
 public:
  Sink() { StartRead(&message_); }
  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);
    message_.Clear();
    StartRead(&message_);
  }
  void OnDone() override { delete this; }

 private:
  grpc::ByteBuffer message_;
};

class SinkService final : public grpc::CallbackGenericService {
 public:
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext*) override {
    return new Sink;
  }
};

// Sends one message after another and waits for the server's end.
class Source final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  Source(const std::shared_ptr<grpc::Channel>& channel, absl::string_view memory,
         int64_t chunk_bytes, int64_t total_bytes)
      : stub_(channel), memory_(memory), chunk_bytes_(chunk_bytes), left_bytes_(total_bytes) {
    stub_.PrepareBidiStreamingCall(&context_, "/bench.Bare/Stream", {}, this);
    WriteNext();
    StartCall();
  }

  void OnWriteDone(bool ok) override {
    if (ok) WriteNext();
  }
  void OnDone(const grpc::Status& status) override {
    // The waiter may destroy this while the promise is still being set.
    const std::shared_ptr<std::promise<bool>> done = done_;
    done->set_value(status.ok());
  }

  bool Wait() { return done_->get_future().get(); }

 private:
  void WriteNext() {
    if (left_bytes_ == 0) return StartWritesDone();
    const int64_t size = std::min(chunk_bytes_, left_bytes_);
    if (offset_ + size > static_cast<int64_t>(memory_.size())) offset_ = 0;
    const grpc::Slice slice(memory_.data() + offset_, size, grpc::Slice::STATIC_SLICE);
    offset_ += size;
    left_bytes_ -= size;
    message_ = grpc::ByteBuffer(&slice, 1);
    StartWrite(&message_);
  }

  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  const absl::string_view memory_;
  const int64_t chunk_bytes_;
  int64_t left_bytes_;
  int64_t offset_ = 0;
  grpc::ByteBuffer message_;
  std::shared_ptr<std::promise<bool>> done_ = std::make_shared<std::promise<bool>>();
};

void Require(bool condition, const char* what) {
  if (condition) return;
  std::perror(what);
  std::exit(1);
}

}  // namespace

BareStreamServer::BareStreamServer() : service_(std::make_unique<SinkService>()) {
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterCallbackGenericService(service_.get());
  server_ = builder.BuildAndStart();
  Require(server_ != nullptr, "bare server");
  address_ = absl::StrCat("127.0.0.1:", port);
}

BareStreamServer::~BareStreamServer() { server_->Shutdown(); }

absl::Duration TimeBareStream(const std::shared_ptr<grpc::Channel>& channel,
                              absl::string_view memory, int64_t chunk_bytes,
                              int64_t total_bytes) {
  const absl::Time start = absl::Now();
  Source source(channel, memory, chunk_bytes, total_bytes);
  Require(source.Wait(), "bare stream");
  return absl::Now() - start;
}

absl::Duration TimeRawTcp(absl::string_view memory, int64_t chunk_bytes, int64_t total_bytes) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* name = reinterpret_cast<sockaddr*>(&address);
  Require(bind(listener, name, size) == 0 && listen(listener, 1) == 0 &&
              getsockname(listener, name, &size) == 0,
          "listen");
  const int sender = socket(AF_INET, SOCK_STREAM, 0);
  Require(connect(sender, name, size) == 0, "connect");
  const int receiver = accept(listener, nullptr, nullptr);

  const absl::Time start = absl::Now();
  std::thread reader([&] {
    std::vector<char> block(chunk_bytes);
    for (int64_t left = total_bytes; left > 0;) {
      const ssize_t got = read(receiver, block.data(), block.size());
      Require(got > 0, "read");
      left -= got;
    }
  });
  int64_t offset = 0;
  for (int64_t left = total_bytes; left > 0;) {
    if (offset + chunk_bytes > static_cast<int64_t>(memory.size())) offset = 0;
    const ssize_t sent = write(sender, memory.data() + offset, std::min(chunk_bytes, left));
    Require(sent > 0, "write");
    offset += sent;
    left -= sent;
  }
  reader.join();
  const absl::Duration elapsed = absl::Now() - start;
  for (const int fd : {sender, receiver, listener}) close(fd);
  return elapsed;
}

}  // namespace planewise
