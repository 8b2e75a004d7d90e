// Field report 101: a client that stops reading costs at most its input window, its
// result budget and one operation, and slows nobody else down.
#include <cstdint>
#include <memory>
#include <string>

#include "clients/cpp/client.h"
#include "core/tensor/memory_budget.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "planewise/v1/session.grpc.pb.h"
#include "proto/version/api_version.h"
#include "tests/e2e/test_daemon.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kWindowBytes = 2 * kMiB;
constexpr int64_t kBudgetBytes = 4 * kMiB;
// X of 1 MiB, Y of twice as much (F32, 64 to 128 features).
constexpr int64_t kTokens = kMiB / (kLayerIn * 4);
constexpr int64_t kInputBytes = kMiB;
constexpr int64_t kResultBytes = 2 * kMiB;

// Sends operations as fast as the window lets it and never acknowledges; reads
// only what tells it that the window moved.
class DeafClient {
 public:
  explicit DeafClient(const std::string& address)
      : stub_(v1::Sessions::NewStub(
            grpc::CreateChannel(address, grpc::InsecureChannelCredentials()))),
        stream_(stub_->Stream(&context_)) {
    v1::ClientFrame frame;
    v1::OpenSession& open = *frame.mutable_open();
    open.set_client_api_version(std::string(kApiVersion));
    open.set_result_limit(1);  // ready for one byte of results, ever
    EXPECT_TRUE(stream_->Write(frame));
    v1::ServerFrame opened;
    EXPECT_TRUE(stream_->Read(&opened));
    input_limit_ = opened.opened().input_limit();
  }
  ~DeafClient() { context_.TryCancel(); }

  // Sends whole operations until the daemon takes no more input. Returns how
  // many results were announced.
  int SendUntilRefused() {
    uint64_t position = 0;
    int results = 0;
    for (uint64_t id = 1;; ++id) {
      v1::ClientFrame frame;
      v1::Operation& operation = *frame.mutable_operation();
      operation.set_id(id);
      operation.set_input_position(position);
      v1::Forward& forward = *operation.mutable_forward();
      forward.set_model("m");
      forward.set_layer(kLayer);
      forward.set_step(1);
      forward.mutable_input()->set_data_type(v1::DATA_TYPE_F32);
      forward.mutable_input()->add_shape(kTokens);
      forward.mutable_input()->add_shape(kLayerIn);
      EXPECT_TRUE(stream_->Write(frame));
      // The window moves while earlier operations are executed and their results
      // find room; after that it never moves again.
      while (position + kInputBytes > input_limit_) {
        if (results == kResultsThatFit) return results;
        v1::ServerFrame answer;
        EXPECT_TRUE(stream_->Read(&answer));
        if (answer.has_input_window()) input_limit_ = answer.input_window().input_limit();
        if (answer.has_result()) ++results;
      }
      frame.mutable_chunk()->set_position(position);
      frame.mutable_chunk()->set_data(std::string(kInputBytes, '\0'));
      EXPECT_TRUE(stream_->Write(frame));
      position += kInputBytes;
    }
  }

 private:
  static constexpr int kResultsThatFit = kBudgetBytes / kResultBytes;

  std::unique_ptr<v1::Sessions::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::ClientFrame, v1::ServerFrame>> stream_;
  uint64_t input_limit_ = 0;
};

TEST(SlowReaderTest, CostsBoundedMemoryAndNobodyElse) {
  TestDaemon daemon([](ServerOptions& options) {
    options.session.input_window_bytes = kWindowBytes;
    options.session.result_budget_bytes = kBudgetBytes;
  });
  const auto client = daemon.Connect();
  PW_ASSERT_OK(client->CreateModel(
      CreateRequest("m", daemon.WriteModel("m"), v1::BACKWARD_OVERRIDE_DEQUANTIZED)));
  const int64_t idle_bytes = daemon.server().budget().used_bytes();
  {
    DeafClient deaf(daemon.socket_address());
    EXPECT_EQ(deaf.SendUntilRefused(), kBudgetBytes / kResultBytes);
    PW_ASSERT_OK_AND_ASSIGN(const v1::Capabilities capabilities, client->GetCapabilities());
    const int64_t held_bytes = capabilities.memory_used_bytes() - idle_bytes;
    EXPECT_LE(held_bytes, kWindowBytes + kBudgetBytes + kInputBytes + kResultBytes);
    EXPECT_GE(held_bytes, kBudgetBytes);

    // Others work on meanwhile.
    PW_ASSERT_OK_AND_ASSIGN(const auto session, client->OpenSession());
    v1::Forward forward;
    forward.set_model("m");
    forward.set_layer(kLayer);
    forward.set_step(1);
    forward.mutable_input()->set_data_type(v1::DATA_TYPE_F32);
    forward.mutable_input()->add_shape(kTokens);
    forward.mutable_input()->add_shape(kLayerIn);
    const std::string x(kInputBytes, '\0');
    std::string y(kResultBytes, '\1');
    PW_EXPECT_OK(session->Forward(forward, x, absl::MakeSpan(y)));
  }
}

}  // namespace
}  // namespace planewise
