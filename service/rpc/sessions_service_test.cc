// Sessions over a real gRPC server: frames in and out, unary calls, and the ways
// in which a stream ends.
#include "service/rpc/sessions_service.h"

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/post_and_wait.h"
#include "core/base/serial_executor.h"
#include "core/tensor/memory_budget.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planewise/v1/session.grpc.pb.h"
#include "proto/status/grpc_status.h"
#include "proto/status/status_codec.h"
#include "service/compute/fake_linear_compute.h"
#include "service/compute/linear_executor.h"
#include "service/rpc/call_gate.h"
#include "service/schedule/thread_runner.h"
#include "service/session/session_limits.h"
#include "service/session/session_table.h"
#include "service/weights/fake_lease_source.h"
#include "tests/testing/integer_model.h"
#include "tests/testing/raw_stream.h"
#include "tests/testing/socket_directory.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

using testing::HasSubstr;

constexpr int64_t kIn = 8;
constexpr int64_t kOut = 4;
constexpr int64_t kTokens = 3;

class NoLog final : public CallLog {
 public:
  void Ended(const CallRecord&) override {}
};

std::string Bytes(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

// X [kTokens, kIn].
std::string Input() { return Bytes(IntegerMatrix(kTokens, kIn, 1)); }

v1::OpenSession OpenNew() {
  v1::OpenSession open;
  open.set_client_api_version("1.0");
  open.set_result_limit(1 << 20);
  return open;
}

v1::Operation Forward(uint64_t id, uint64_t input_position, int64_t tokens = kTokens) {
  v1::Operation operation;
  operation.set_id(id);
  operation.set_input_position(input_position);
  v1::Forward& forward = *operation.mutable_forward();
  forward.set_model("m");
  forward.set_layer("l");
  forward.set_step(1);
  forward.mutable_input()->set_data_type(v1::DATA_TYPE_F32);
  forward.mutable_input()->add_shape(tokens);
  forward.mutable_input()->add_shape(kIn);
  return operation;
}

class SessionsServiceTest : public testing::Test {
 protected:
  // A stream as a client holds it.
  struct ClientStream {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReaderWriter<v1::ClientFrame, v1::ServerFrame>> stream;

    void Write(const v1::ClientFrame& frame) { EXPECT_TRUE(stream->Write(frame)); }
    v1::ServerFrame Read() {
      v1::ServerFrame frame;
      EXPECT_TRUE(stream->Read(&frame));
      return frame;
    }
    // Skips frames until `ended`, and gives its status.
    absl::Status ReadEnd() {
      v1::ServerFrame frame;
      while (stream->Read(&frame)) {
        if (frame.has_ended()) return StatusFromProto(frame.ended().status());
      }
      ADD_FAILURE() << "the stream ended without saying why";
      return absl::OkStatus();
    }
  };

  void SetUp() override {
    executor_->Post([this] { models_.Publish(version_); });
    gate_.Enter(ServingPhase::kServing);
    grpc::ServerBuilder builder;
    builder.AddListeningPort(directory_.Address(), grpc::InsecureServerCredentials());
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
    channel_ = grpc::CreateChannel(directory_.Address(), grpc::InsecureChannelCredentials());
    stub_ = v1::Sessions::NewStub(channel_);
  }

  void TearDown() override {
    // As the daemon ends: a test may have left operations running.
    server_->Shutdown();
    runner_.Stop();
    PostAndWait(*executor_, [this] { sessions_.Shutdown(); });
    executor_.reset();
  }

  std::unique_ptr<ClientStream> NewStream() {
    auto stream = std::make_unique<ClientStream>();
    stream->stream = stub_->Stream(&stream->context);
    return stream;
  }

  // A stream with a session of its own.
  std::unique_ptr<ClientStream> Opened(v1::SessionOpened* opened = nullptr) {
    std::unique_ptr<ClientStream> stream = NewStream();
    v1::ClientFrame frame;
    *frame.mutable_open() = OpenNew();
    stream->Write(frame);
    const v1::ServerFrame answer = stream->Read();
    EXPECT_TRUE(answer.has_opened()) << answer.ShortDebugString();
    if (opened != nullptr) *opened = answer.opened();
    return stream;
  }

  static void SendForward(ClientStream& stream, uint64_t id, uint64_t position) {
    v1::ClientFrame frame;
    *frame.mutable_operation() = Forward(id, position);
    stream.Write(frame);
    // In two chunks, cut anywhere.
    const std::string input = Input();
    frame.mutable_chunk()->set_position(position);
    frame.mutable_chunk()->set_data(input.substr(0, 50));
    stream.Write(frame);
    frame.mutable_chunk()->set_position(position + 50);
    frame.mutable_chunk()->set_data(input.substr(50));
    stream.Write(frame);
  }

  // Y of Input().
  std::string Output() const {
    return Bytes(ExpectedForward(version_->layers[0], IntegerMatrix(kTokens, kIn, 1)));
  }

  // The next result and its bytes; window frames in between are skipped.
  static std::pair<v1::OperationResult, std::string> ReadResult(ClientStream& stream) {
    v1::OperationResult result;
    std::string bytes;
    do {
      const v1::ServerFrame frame = stream.Read();
      if (frame.has_result()) result = frame.result();
      if (frame.has_chunk()) bytes += frame.chunk().data();
      if (testing::Test::HasFailure()) break;
    } while (result.id() == 0 || bytes.size() < static_cast<size_t>(result.result_bytes()));
    return {result, bytes};
  }

  SocketDirectory directory_;
  std::optional<SerialExecutor> executor_{std::in_place};
  ThreadRunner runner_{*executor_};
  std::shared_ptr<MemoryBudget> budget_ = MemoryBudget::Create(int64_t{1} << 30);
  FakeLinearCompute compute_;
  LinearExecutor linear_{compute_, runner_, budget_};
  std::shared_ptr<const ModelVersion> version_ =
      MakeIntegerVersion(*budget_, "m", 1, {{"l", kOut, kIn}});
  FakeLeaseSource models_{SystemClock()};
  std::atomic<uint64_t> random_ = 1;
  SessionTable sessions_{{&*executor_, &SystemClock(), &runner_, &models_, &linear_, budget_},
                         SessionLimits(),
                         [this] { return random_++; }};
  CallGate gate_{std::nullopt, 1000};
  NoLog log_;
  std::atomic<int> open_calls_ = 0;
  SessionsService service_{{&*executor_, &SystemClock(), &gate_, &log_, &open_calls_}, sessions_};
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Sessions::Stub> stub_;
};

TEST_F(SessionsServiceTest, ForwardOnAStream) {
  const auto stream = Opened();
  SendForward(*stream, 1, 0);
  const auto [result, bytes] = ReadResult(*stream);
  EXPECT_EQ(result.id(), 1u);
  EXPECT_EQ(result.status().code(), 0) << result.status().message();
  EXPECT_EQ(result.forward().version(), 1u);
  EXPECT_EQ(bytes, Output());
}

// More chunks than may be read ahead, each long enough to be copied beside the
// executor: reading goes on when a place is free.
TEST_F(SessionsServiceTest, ReadingGoesOnAfterChunksWereCopied) {
  constexpr int64_t kManyTokens = 1 << 15;
  constexpr size_t kChunkBytes = size_t{96} << 10;
  const std::vector<float> x = IntegerMatrix(kManyTokens, kIn, 1);
  const std::string input = Bytes(x);
  const std::string expected = Bytes(ExpectedForward(version_->layers[0], x));
  const auto stream = Opened();
  uint64_t position = 0;
  for (uint64_t id = 1; id <= 40; ++id) {
    v1::ClientFrame frame;
    *frame.mutable_operation() = Forward(id, position, kManyTokens);
    stream->Write(frame);
    for (size_t begin = 0; begin < input.size(); begin += kChunkBytes) {
      frame.mutable_chunk()->set_position(position + begin);
      frame.mutable_chunk()->set_data(input.substr(begin, kChunkBytes));
      stream->Write(frame);
    }
    position += input.size();
    const auto [result, bytes] = ReadResult(*stream);
    ASSERT_EQ(result.status().code(), 0) << result.status().message();
    ASSERT_TRUE(bytes == expected) << "operation " << id;
    frame.mutable_acknowledge()->set_through_operation(id);
    frame.mutable_acknowledge()->set_result_limit(result.result_position() + (1 << 20));
    stream->Write(frame);
  }
}

TEST_F(SessionsServiceTest, CloseEndsTheStreamWithOk) {
  const auto stream = Opened();
  v1::ClientFrame close;
  close.mutable_close();
  stream->Write(close);
  PW_EXPECT_OK(stream->ReadEnd());
  PW_EXPECT_OK(StatusFromGrpc(stream->stream->Finish()));
}

TEST_F(SessionsServiceTest, ViolationIsTheLastFrame) {
  const auto stream = NewStream();
  v1::ClientFrame frame;
  frame.mutable_heartbeat();
  stream->Write(frame);
  EXPECT_THAT(stream->ReadEnd(), HasReason(Reason::kProtocolViolation));
  PW_EXPECT_OK(StatusFromGrpc(stream->stream->Finish()));
}

// Sends bytes of its own choice as the first message of a stream and gives the
// status in the `ended` frame that comes back.
absl::Status EndAfter(const std::shared_ptr<grpc::Channel>& channel, const std::string& bytes) {
  const RawAnswer answer = ExchangeRaw(channel, "/planewise.v1.Sessions/Stream", bytes);
  PW_EXPECT_OK(StatusFromGrpc(answer.status));
  v1::ServerFrame frame;
  EXPECT_TRUE(frame.ParseFromString(answer.bytes));
  return StatusFromProto(frame.ended().status());
}

TEST_F(SessionsServiceTest, BytesThatAreNoFrameEndTheStreamOnly) {
  EXPECT_THAT(EndAfter(channel_, "\xFF\xFF\xFF"), HasReason(Reason::kProtocolViolation));
  SendForward(*Opened(), 1, 0);
}

TEST_F(SessionsServiceTest, SessionOutlivesABrokenStream) {
  v1::SessionOpened opened;
  {
    const auto stream = Opened(&opened);
    SendForward(*stream, 1, 0);
    ReadResult(*stream);
    stream->context.TryCancel();
  }
  const auto stream = NewStream();
  v1::ClientFrame resume;
  *resume.mutable_open() = OpenNew();
  resume.mutable_open()->set_session_id(opened.session_id());
  resume.mutable_open()->set_resume_token(opened.resume_token());
  stream->Write(resume);
  const v1::ServerFrame answer = stream->Read();
  ASSERT_TRUE(answer.has_opened()) << answer.ShortDebugString();
  EXPECT_TRUE(answer.opened().resumed());
  EXPECT_EQ(answer.opened().executed_through(), 1u);
  // The result that was not acknowledged comes again.
  EXPECT_EQ(ReadResult(*stream).second, Output());
  SendForward(*stream, 2, Input().size());
  EXPECT_EQ(ReadResult(*stream).first.id(), 2u);
}

TEST_F(SessionsServiceTest, SecondStreamOfASessionEndsTheFirst) {
  v1::SessionOpened opened;
  const auto first = Opened(&opened);
  const auto second = NewStream();
  v1::ClientFrame resume;
  *resume.mutable_open() = OpenNew();
  resume.mutable_open()->set_session_id(opened.session_id());
  resume.mutable_open()->set_resume_token(opened.resume_token());
  second->Write(resume);
  EXPECT_TRUE(second->Read().opened().resumed());
  EXPECT_THAT(first->ReadEnd(), HasReason(Reason::kStreamSuperseded));
}

TEST_F(SessionsServiceTest, ClientThatSendsNoMoreGetsWhatIsReady) {
  const auto stream = Opened();
  SendForward(*stream, 1, 0);
  EXPECT_EQ(ReadResult(*stream).second, Output());
  stream->stream->WritesDone();
  v1::ServerFrame frame;
  while (stream->stream->Read(&frame)) {
  }
  PW_EXPECT_OK(StatusFromGrpc(stream->stream->Finish()));
}

TEST_F(SessionsServiceTest, DrainingRefusesStreamsAndSessions) {
  gate_.Enter(ServingPhase::kDraining);
  const auto stream = NewStream();
  v1::ServerFrame frame;
  EXPECT_FALSE(stream->stream->Read(&frame));
  EXPECT_THAT(StatusFromGrpc(stream->stream->Finish()), HasReason(Reason::kDraining));
  grpc::ClientContext context;
  v1::SessionOpened opened;
  EXPECT_THAT(StatusFromGrpc(stub_->Open(&context, OpenNew(), &opened)),
              HasReason(Reason::kDraining));
}

TEST_F(SessionsServiceTest, UnaryCallsAreASessionToo) {
  v1::SessionOpened opened;
  grpc::ClientContext open_context;
  PW_ASSERT_OK(StatusFromGrpc(stub_->Open(&open_context, OpenNew(), &opened)));

  v1::ExecuteRequest execute;
  execute.set_session_id(opened.session_id());
  execute.set_resume_token(opened.resume_token());
  *execute.mutable_operation() = Forward(1, 0);
  execute.set_inputs(Input());
  v1::ExecuteResponse executed;
  grpc::ClientContext execute_context;
  PW_ASSERT_OK(StatusFromGrpc(stub_->Execute(&execute_context, execute, &executed)));
  EXPECT_EQ(executed.result().status().code(), 0) << executed.result().status().message();
  EXPECT_EQ(executed.outputs(), Output());

  v1::HeartbeatRequest heartbeat;
  heartbeat.set_session_id(opened.session_id());
  heartbeat.set_resume_token(opened.resume_token());
  v1::HeartbeatResponse alive;
  grpc::ClientContext heartbeat_context;
  PW_ASSERT_OK(StatusFromGrpc(stub_->Heartbeat(&heartbeat_context, heartbeat, &alive)));
  EXPECT_EQ(alive.timeout_ms(), absl::ToInt64Milliseconds(SessionLimits().timeout));

  v1::CloseRequest close;
  close.set_session_id(opened.session_id());
  close.set_resume_token(opened.resume_token());
  v1::CloseResponse closed;
  grpc::ClientContext close_context;
  PW_ASSERT_OK(StatusFromGrpc(stub_->Close(&close_context, close, &closed)));
  grpc::ClientContext late_context;
  EXPECT_THAT(StatusFromGrpc(stub_->Execute(&late_context, execute, &executed)),
              HasReason(Reason::kSessionExpired));
}

}  // namespace
}  // namespace planewise
