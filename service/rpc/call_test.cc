// Calls over a real gRPC server: admission, answers, progress, cancellation.
#include "service/rpc/call.h"

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/mutex.h"
#include "core/base/serial_executor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planewise/v1/models.grpc.pb.h"
#include "proto/status/grpc_status.h"
#include "service/rpc/call_gate.h"
#include "service/rpc/progress_stream.h"
#include "service/rpc/unary_call.h"
#include "tests/testing/sim_clock.h"
#include "tests/testing/sim_executor.h"
#include "tests/testing/socket_directory.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

using testing::HasSubstr;

class RecordingLog final : public CallLog {
 public:
  void Ended(const CallRecord& record) override {
    MutexLock lock(mutex_);
    records_.push_back(record);
  }
  // A call is logged before its client hears of its end.
  CallRecord Last() {
    MutexLock lock(mutex_);
    return records_.back();
  }

 private:
  Mutex mutex_;
  std::vector<CallRecord> records_ ABSL_GUARDED_BY(mutex_);
};

// Calls whose logic is the test's.
class ScriptedModels final : public v1::Models::CallbackService {
 public:
  explicit ScriptedModels(const RpcEnvironment& environment) : environment_(environment) {}

  std::function<void(Call&, Reply<v1::Model>)> get_model;
  std::function<void(Call&, ProgressStream<v1::SaveModelResponse>&)> save_model;

  grpc::ServerUnaryReactor* GetModel(grpc::CallbackServerContext* context,
                                     const v1::GetModelRequest*, v1::Model* response) override {
    return StartUnary<v1::Model>(environment_, *context, CallKind::kExisting, "Models.GetModel",
                                 *response, [this](Call& call, Reply<v1::Model> reply) {
                                   get_model(call, std::move(reply));
                                 });
  }
  grpc::ServerWriteReactor<v1::SaveModelResponse>* SaveModel(
      grpc::CallbackServerContext* context, const v1::SaveModelRequest*) override {
    return StartProgress<v1::SaveModelResponse>(
        environment_, *context, "Models.SaveModel",
        [this](Call& call, ProgressStream<v1::SaveModelResponse>& stream) {
          save_model(call, stream);
        });
  }

 private:
  const RpcEnvironment environment_;
};

class CallTest : public testing::Test {
 protected:
  void SetUp() override {
    grpc::ServerBuilder builder;
    const std::string socket = directory_.Address();
    int port = 0;
    builder.AddListeningPort(socket, grpc::InsecureServerCredentials());
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&models_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
    gate_.Enter(ServingPhase::kServing);
    local_ = Stub(socket);
    remote_ = Stub(absl::StrCat("127.0.0.1:", port));
  }

  void TearDown() override {
    server_->Shutdown();
    executor_.reset();
  }

  static std::unique_ptr<v1::Models::Stub> Stub(const std::string& address) {
    return v1::Models::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  }

  absl::Status GetModel(v1::Models::Stub& stub, grpc::ClientContext& context) {
    return StatusFromGrpc(stub.GetModel(&context, {}, &model_));
  }

  // What a test's logic shares with the test: the executor may still be within
  // that logic when the test has seen all it waits for.
  std::promise<void> started_;
  std::promise<void> ended_;
  std::optional<Reply<v1::Model>> kept_;

  SocketDirectory directory_;
  std::optional<SerialExecutor> executor_{std::in_place};
  CallGate gate_{AuthToken("0a1b"), 1000};
  RecordingLog log_;
  std::atomic<int> open_calls_ = 0;
  ScriptedModels models_{{&*executor_, &SystemClock(), &gate_, &log_, &open_calls_}};
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<v1::Models::Stub> local_;
  std::unique_ptr<v1::Models::Stub> remote_;
  v1::Model model_;
};

v1::Model Named(const std::string& name) {
  v1::Model model;
  model.set_name(name);
  return model;
}

TEST_F(CallTest, UnaryAnswersAndIsLogged) {
  models_.get_model = [](Call& call, Reply<v1::Model> reply) {
    std::move(reply)(Named(call.principal().name));
  };
  grpc::ClientContext context;
  context.AddMetadata(kRequestIdKey, "trainer-7");
  context.AddMetadata("traceparent", "00-11-22-01");
  PW_ASSERT_OK(GetModel(*local_, context));
  EXPECT_EQ(model_.name(), "unix:1000");
  const auto& metadata = context.GetServerInitialMetadata();
  ASSERT_EQ(metadata.count(kRequestIdKey), 1u);
  EXPECT_EQ(metadata.find(kRequestIdKey)->second, "trainer-7");

  const CallRecord record = log_.Last();
  EXPECT_EQ(record.method, "Models.GetModel");
  EXPECT_EQ(record.request_id, "trainer-7");
  EXPECT_EQ(record.trace_parent, "00-11-22-01");
  EXPECT_EQ(record.principal.name, "unix:1000");
  PW_EXPECT_OK(record.status);
}

TEST_F(CallTest, FailureReachesTheClientWhole) {
  const absl::Status failure =
      Error(Reason::kNotFound, "model \"a\": not hosted").With("model", "a");
  models_.get_model = [failure](Call&, Reply<v1::Model> reply) { std::move(reply)(failure); };
  grpc::ClientContext context;
  const absl::Status received = GetModel(*local_, context);
  EXPECT_EQ(received, failure);
  EXPECT_EQ(DetailsOf(received), DetailsOf(failure));
  EXPECT_EQ(log_.Last().status, failure);
}

TEST_F(CallTest, AnswerMayComeLater) {
  models_.get_model = [this](Call& call, Reply<v1::Model> reply) {
    kept_ = std::move(reply);
    call.executor().Post([this] { (*std::exchange(kept_, std::nullopt))(Named("later")); });
  };
  grpc::ClientContext context;
  PW_ASSERT_OK(GetModel(*local_, context));
  EXPECT_EQ(model_.name(), "later");
}

TEST_F(CallTest, RequestIdsThatAreNoIdsAreReplaced) {
  models_.get_model = [](Call&, Reply<v1::Model> reply) { std::move(reply)(Named("a")); };
  for (const std::string& id : {std::string(200, 'x'), std::string("")}) {
    grpc::ClientContext context;
    context.AddMetadata(kRequestIdKey, id);
    PW_ASSERT_OK(GetModel(*local_, context));
    EXPECT_EQ(log_.Last().request_id.size(), 16u);
  }
  grpc::ClientContext first;
  PW_ASSERT_OK(GetModel(*local_, first));
  const std::string first_id = log_.Last().request_id;
  grpc::ClientContext second;
  PW_ASSERT_OK(GetModel(*local_, second));
  EXPECT_NE(log_.Last().request_id, first_id);
}

TEST_F(CallTest, TcpNeedsTheToken) {
  models_.get_model = [](Call& call, Reply<v1::Model> reply) {
    std::move(reply)(Named(call.principal().name));
  };
  grpc::ClientContext without;
  EXPECT_THAT(GetModel(*remote_, without),
              HasReason(Reason::kUnauthenticated, HasSubstr("authorization: Bearer")));
  EXPECT_EQ(log_.Last().principal.name, "");

  grpc::ClientContext twice;
  twice.AddMetadata("authorization", "Bearer 0a1b");
  twice.AddMetadata("authorization", "Bearer 0a1b");
  EXPECT_THAT(GetModel(*remote_, twice), HasReason(Reason::kUnauthenticated));

  grpc::ClientContext with;
  with.AddMetadata("authorization", "Bearer 0a1b");
  PW_ASSERT_OK(GetModel(*remote_, with));
  EXPECT_EQ(model_.name(), "token");
}

TEST_F(CallTest, PhasesHoldWorkBack) {
  models_.get_model = [](Call&, Reply<v1::Model> reply) { std::move(reply)(Named("a")); };
  gate_.Enter(ServingPhase::kStarting);
  grpc::ClientContext starting;
  const absl::Status refused = GetModel(*local_, starting);
  EXPECT_THAT(refused, HasReason(Reason::kUnavailable, HasSubstr("starting")));
  EXPECT_EQ(DetailsOf(refused)->retry_delay_ms, kStartingRetryDelayMs);

  gate_.Enter(ServingPhase::kDraining);
  grpc::ClientContext existing;
  PW_EXPECT_OK(GetModel(*local_, existing));
  grpc::ClientContext fresh;
  v1::SaveModelResponse response;
  const auto stream = local_->SaveModel(&fresh, {});
  EXPECT_FALSE(stream->Read(&response));
  const absl::Status draining = StatusFromGrpc(stream->Finish());
  EXPECT_THAT(draining, HasReason(Reason::kDraining));
  EXPECT_EQ(DetailsOf(draining)->retry_delay_ms, kDrainingRetryDelayMs);
}

TEST_F(CallTest, ClientThatLeavesIsNoticed) {
  models_.get_model = [this](Call& call, Reply<v1::Model> reply) {
    kept_ = std::move(reply);
    call.OnCancel([this] {
      (*std::exchange(kept_, std::nullopt))(Error(Reason::kCancelled, "given up"));
      ended_.set_value();
    });
    started_.set_value();
  };
  grpc::ClientContext context;
  std::thread client([&] {
    EXPECT_THAT(GetModel(*local_, context), HasReason(Reason::kCancelled));
  });
  started_.get_future().wait();
  context.TryCancel();
  client.join();
  ended_.get_future().wait();
  EXPECT_THAT(log_.Last().status, HasReason(Reason::kCancelled));
}

// Logic that waits for something else first registers its reaction late.
TEST(CallCancelTest, ReactionThatComesAfterTheCancellationRunsAtOnce) {
  SimClock clock;
  SimExecutor executor(clock);
  const CallGate gate(std::nullopt, 1000);
  RecordingLog log;
  std::atomic<int> open_calls = 0;
  grpc::CallbackServerContext context;
  const auto call = Call::Begin({&executor, &clock, &gate, &log, &open_calls}, context,
                                CallKind::kNew, "Models.GetModel");
  call->PostCancel();
  executor.RunUntilIdle();
  bool reacted = false;
  call->OnCancel([&] { reacted = true; });
  EXPECT_TRUE(reacted);
}

TEST(CallCancelTest, CancellationOfAClosedCallIsNoNews) {
  SimClock clock;
  SimExecutor executor(clock);
  const CallGate gate(std::nullopt, 1000);
  RecordingLog log;
  std::atomic<int> open_calls = 0;
  grpc::CallbackServerContext context;
  const auto call = Call::Begin({&executor, &clock, &gate, &log, &open_calls}, context,
                                CallKind::kNew, "Models.GetModel");
  bool reacted = false;
  call->OnCancel([&] { reacted = true; });
  call->PostCancel();
  call->Close(absl::OkStatus());
  executor.RunUntilIdle();
  EXPECT_FALSE(reacted);
}

TEST(CallCountTest, OpenCallsAreCountedButStreams) {
  SimClock clock;
  SimExecutor executor(clock);
  const CallGate gate(std::nullopt, 1000);
  RecordingLog log;
  std::atomic<int> open_calls = 0;
  const RpcEnvironment environment{&executor, &clock, &gate, &log, &open_calls};
  grpc::CallbackServerContext context;
  const auto call = Call::Begin(environment, context, CallKind::kExisting, "Models.GetModel");
  const auto stream = Call::Begin(environment, context, CallKind::kStream, "Sessions.Stream");
  EXPECT_EQ(open_calls, 1);
  stream->Close(absl::OkStatus());
  EXPECT_EQ(open_calls, 1);
  call->Close(absl::OkStatus());
  EXPECT_EQ(open_calls, 0);
}

v1::SaveModelResponse Progress(int64_t done_bytes) {
  v1::SaveModelResponse response;
  response.mutable_progress()->set_done_bytes(done_bytes);
  return response;
}

v1::SaveModelResponse Result(uint64_t version) {
  v1::SaveModelResponse response;
  response.mutable_result()->set_version(version);
  return response;
}

TEST_F(CallTest, ProgressIsNeverQueued) {
  models_.save_model = [](Call&, ProgressStream<v1::SaveModelResponse>& stream) {
    for (int64_t i = 1; i <= 1000; ++i) stream.Tell(Progress(i));
    stream.End(Result(7));
  };
  grpc::ClientContext context;
  const auto stream = local_->SaveModel(&context, {});
  v1::SaveModelResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.progress().done_bytes(), 1);
  // What came while that was on its way gave room to the result.
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.result().version(), 7u);
  EXPECT_FALSE(stream->Read(&response));
  PW_EXPECT_OK(StatusFromGrpc(stream->Finish()));
}

TEST_F(CallTest, ProgressOfAFailureEndsWithIt) {
  models_.save_model = [](Call&, ProgressStream<v1::SaveModelResponse>& stream) {
    stream.Tell(Progress(1));
    stream.End(Error(Reason::kNoStore, "no store"));
  };
  grpc::ClientContext context;
  const auto stream = local_->SaveModel(&context, {});
  v1::SaveModelResponse response;
  EXPECT_TRUE(stream->Read(&response));
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_THAT(StatusFromGrpc(stream->Finish()), HasReason(Reason::kNoStore));
}

TEST_F(CallTest, ProgressToAClientThatLeftEndsQuietly) {
  models_.save_model = [this](Call& call, ProgressStream<v1::SaveModelResponse>& stream) {
    call.OnCancel([this, &stream] {
      for (int64_t i = 1; i <= 10; ++i) stream.Tell(Progress(i));
      stream.End(Error(Reason::kCancelled, "given up"));
      ended_.set_value();
    });
    stream.Tell(Progress(0));
    started_.set_value();
  };
  {
    grpc::ClientContext context;
    const auto stream = local_->SaveModel(&context, {});
    started_.get_future().wait();
    context.TryCancel();
  }
  ended_.get_future().wait();
  server_->Shutdown();
  EXPECT_THAT(log_.Last().status, HasReason(Reason::kCancelled));
}

}  // namespace
}  // namespace planewise
