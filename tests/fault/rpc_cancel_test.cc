// Callers that give up at every state of a call: nothing half-made stays, nothing
// is held for them, and the same call works afterwards.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "clients/cpp/client.h"
#include "core/base/error.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "planewise/v1/models.grpc.pb.h"
#include "planewise/v1/session.grpc.pb.h"
#include "proto/status/grpc_status.h"
#include "proto/version/api_version.h"
#include "tests/e2e/test_daemon.h"
#include "tests/testing/eventually.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

class RpcCancelTest : public testing::Test {
 protected:
  // Gives up at progress message `step`; counts those that came.
  CallOptions GiveUpAt(int step, int& seen) {
    seen = 0;
    CallOptions options;
    options.progress = [step, &seen](const v1::Progress&) { return ++seen < step; };
    return options;
  }

  int64_t UsedBytes() const { return daemon_.server().budget().used_bytes(); }

  absl::StatusOr<v1::Model> Get(const std::string& name) {
    v1::GetModelRequest request;
    request.set_name(name);
    return client_->GetModel(request);
  }

  void Delete() {
    v1::DeleteModelRequest remove;
    remove.set_name("m");
    PW_ASSERT_OK(client_->DeleteModel(remove));
  }

  void Host() {
    PW_ASSERT_OK(client_->CreateModel(CreateRequest("m", path_, v1::BACKWARD_OVERRIDE_NONE)));
  }

  TestDaemon daemon_;
  std::unique_ptr<Client> client_ = daemon_.Connect();
  const std::string path_ = daemon_.WriteModel("source");
  const int64_t idle_bytes_ = UsedBytes();
};

TEST_F(RpcCancelTest, CreateAtEveryProgress) {
  for (int step = 1;; ++step) {
    SCOPED_TRACE(step);
    int seen = 0;
    const auto created = client_->CreateModel(CreateRequest("m", path_, v1::BACKWARD_OVERRIDE_NONE),
                                              GiveUpAt(step, seen));
    if (seen < step) {
      // There were not so many: it ran to its end.
      PW_EXPECT_OK(created);
      EXPECT_GT(step, 1);
      break;
    }
    // What the caller is told is what is so, now and not later. (A load that ended
    // while the wish to stop was on its way stayed although the caller was told
    // CANCELLED.)
    const absl::StatusOr<v1::Model> model = Get("m");
    if (created.ok()) {
      PW_ASSERT_OK(model);
      EXPECT_EQ(model->state(), v1::MODEL_STATE_SERVING);
      EXPECT_EQ(model->actual_bytes(), model->planned_bytes());
      Delete();
    } else {
      EXPECT_THAT(created, HasReason(Reason::kCancelled));
      EXPECT_THAT(model, HasReason(Reason::kNotFound));
    }
    EXPECT_EQ(UsedBytes(), idle_bytes_);
  }
}

// A caller that breaks its call off is told nothing; the daemon is as consistent.
TEST_F(RpcCancelTest, CreateBrokenOffAfterEveryMessage) {
  const auto stub = v1::Models::NewStub(
      grpc::CreateChannel(daemon_.socket_address(), grpc::InsecureChannelCredentials()));
  const v1::CreateModelRequest request = CreateRequest("m", path_, v1::BACKWARD_OVERRIDE_NONE);
  for (int messages = 0;; ++messages) {
    SCOPED_TRACE(messages);
    grpc::ClientContext context;
    const auto stream = stub->CreateModel(&context, request);
    v1::CreateModelResponse response;
    int read = 0;
    while (read < messages && stream->Read(&response)) ++read;
    const bool ended = read < messages;
    context.TryCancel();
    while (stream->Read(&response)) {
    }
    stream->Finish();
    absl::StatusOr<v1::Model> model;
    ASSERT_TRUE(Eventually([&] {
      model = Get("m");
      if (!model.ok()) return UsedBytes() == idle_bytes_;
      return model->state() == v1::MODEL_STATE_SERVING;
    })) << UsedBytes()
        << " bytes, idle " << idle_bytes_;
    if (model.ok()) {
      EXPECT_EQ(model->actual_bytes(), model->planned_bytes());
      Delete();
    }
    ASSERT_TRUE(Eventually([&] { return UsedBytes() == idle_bytes_; }));
    if (ended) break;
  }
}

TEST_F(RpcCancelTest, SaveAtEveryProgress) {
  Host();
  for (int step = 1;; ++step) {
    SCOPED_TRACE(step);
    int seen = 0;
    v1::SaveModelRequest save;
    save.set_name("m");
    const auto saved = client_->SaveModel(save, GiveUpAt(step, seen));
    if (seen < step) {
      PW_EXPECT_OK(saved);
      break;
    }
    PW_ASSERT_OK_AND_ASSIGN(const v1::Model model, Get("m"));
    if (saved.ok()) {
      EXPECT_EQ(model.durable_version(), model.version());
    } else {
      EXPECT_THAT(saved, HasReason(Reason::kCancelled));
    }
    // It works on as if nothing had been, and what is stored is whole or not there.
    v1::VerifyModelRequest verify;
    verify.set_name("m");
    absl::StatusOr<v1::VerifyResult> verified;
    ASSERT_TRUE(Eventually([&] {
      verified = client_->VerifyModel(verify);
      return ReasonOf(verified.status()) != Reason::kModelBusy;
    }));
    PW_ASSERT_OK(verified);
    EXPECT_TRUE(verified->ok());
  }
  PW_ASSERT_OK_AND_ASSIGN(const v1::Model model, Get("m"));
  EXPECT_EQ(model.durable_version(), model.version());
}

TEST_F(RpcCancelTest, ReadWeightsAfterEveryMessage) {
  Host();
  const auto stub = v1::Models::NewStub(
      grpc::CreateChannel(daemon_.socket_address(), grpc::InsecureChannelCredentials()));
  v1::ReadWeightsRequest request;
  request.set_name("m");
  request.set_dequantize_to(v1::DATA_TYPE_F32);
  request.add_weights(std::string(kLayer) + ".weight");
  const int64_t hosted_bytes = UsedBytes();
  for (int messages = 0;; ++messages) {
    SCOPED_TRACE(messages);
    grpc::ClientContext context;
    const auto stream = stub->ReadWeights(&context, request);
    v1::ReadWeightsResponse response;
    int read = 0;
    while (read < messages && stream->Read(&response)) ++read;
    if (read < messages) {
      PW_EXPECT_OK(StatusFromGrpc(stream->Finish()));
      break;
    }
    context.TryCancel();
    while (stream->Read(&response)) {
    }
    stream->Finish();
    ASSERT_TRUE(Eventually([&] {
      const auto model = Get("m");
      return model.ok() && model->lease_count() == 0 && UsedBytes() == hosted_bytes;
    }));
  }
}

v1::ClientFrame ForwardFrame(int64_t tokens) {
  v1::ClientFrame frame;
  v1::Operation& operation = *frame.mutable_operation();
  operation.set_id(1);
  v1::Forward& forward = *operation.mutable_forward();
  forward.set_model("m");
  forward.set_layer(kLayer);
  forward.set_step(1);
  forward.set_save_for_backward(true);
  forward.set_weight_gradient(true);
  forward.mutable_input()->set_data_type(v1::DATA_TYPE_F32);
  forward.mutable_input()->add_shape(tokens);
  forward.mutable_input()->add_shape(kLayerIn);
  return frame;
}

// A client that vanishes at every frame of a forward: its session stays for it,
// and goes with everything once it is closed.
TEST_F(RpcCancelTest, StreamAfterEveryFrame) {
  Host();
  const auto stub = v1::Sessions::NewStub(
      grpc::CreateChannel(daemon_.socket_address(), grpc::InsecureChannelCredentials()));
  const int64_t hosted_bytes = UsedBytes();
  constexpr int64_t kTokens = 16;
  constexpr int64_t kInputBytes = kTokens * kLayerIn * 4;
  v1::ClientFrame first_half, second_half;
  first_half.mutable_chunk()->set_position(0);
  first_half.mutable_chunk()->set_data(std::string(kInputBytes / 2, '\0'));
  second_half.mutable_chunk()->set_position(kInputBytes / 2);
  second_half.mutable_chunk()->set_data(std::string(kInputBytes / 2, '\0'));
  const std::vector<v1::ClientFrame> frames = {ForwardFrame(kTokens), first_half, second_half};

  for (size_t sent = 0; sent <= frames.size(); ++sent) {
    SCOPED_TRACE(sent);
    v1::SessionOpened opened;
    {
      grpc::ClientContext context;
      const auto stream = stub->Stream(&context);
      v1::ClientFrame open;
      open.mutable_open()->set_client_api_version(std::string(kApiVersion));
      open.mutable_open()->set_result_limit(1 << 20);
      ASSERT_TRUE(stream->Write(open));
      v1::ServerFrame answer;
      ASSERT_TRUE(stream->Read(&answer));
      opened = answer.opened();
      for (size_t i = 0; i < sent; ++i) ASSERT_TRUE(stream->Write(frames[i]));
      context.TryCancel();
      while (stream->Read(&answer)) {
      }
      stream->Finish();
    }
    v1::CloseRequest close;
    close.set_session_id(opened.session_id());
    close.set_resume_token(opened.resume_token());
    v1::CloseResponse closed;
    grpc::ClientContext context;
    PW_ASSERT_OK(StatusFromGrpc(stub->Close(&context, close, &closed)));
    ASSERT_TRUE(Eventually([&] {
      const auto model = Get("m");
      return model.ok() && model->lease_count() == 0 && UsedBytes() == hosted_bytes;
    })) << UsedBytes()
        << " bytes, hosted " << hosted_bytes;
  }
}

}  // namespace
}  // namespace planewise
