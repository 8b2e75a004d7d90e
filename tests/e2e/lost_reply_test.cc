// Calls that change something, whose reply is lost with the connection: the client
// makes them again, and what they do is done once.
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <thread>

#include "clients/cpp/client.h"
#include "clients/cpp/cutting_proxy.h"
#include "core/base/error.h"
#include "core/tensor/memory_budget.h"
#include "gtest/gtest.h"
#include "tests/e2e/test_daemon.h"
#include "tests/testing/eventually.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

class LostReplyTest : public testing::Test {
 protected:
  // A client behind `proxy` that makes failed calls again.
  std::unique_ptr<Client> ConnectBehind(const CuttingProxy& proxy) const {
    Client::Options options;
    options.target = proxy.target();
    options.token = daemon_.token();
    options.retry.delay_first = absl::Milliseconds(1);
    auto client = Client::Connect(options);
    EXPECT_TRUE(client.ok()) << client.status();
    return client.ok() ? *std::move(client) : nullptr;
  }

  // Makes `call`. Once the daemon has done its work, which `done` says, the connection is
  // cut: of what the daemon said to it, nothing has arrived.
  void LoseReply(const std::function<void(Client& client)>& call,
                 const std::function<bool()>& done) {
    CuttingProxy proxy(daemon_.server().tcp_port());
    const auto client = ConnectBehind(proxy);
    ASSERT_NE(client, nullptr);
    proxy.LoseReplies();
    std::thread caller([&] { call(*client); });
    EXPECT_TRUE(Eventually(done));
    proxy.CutAll();
    caller.join();
    EXPECT_EQ(proxy.cut_count(), 1);
  }

  // Makes `call` again and again, each time with a cut a little later: of its request, while
  // the work is done, of its reply. `prepare` and `check` go around each.
  void CutEverywhere(const std::function<void()>& prepare,
                     const std::function<void(Client& client)>& call,
                     const std::function<void()>& check) {
    constexpr int kStepBytes = 50;
    int64_t connected_bytes = 0;
    {
      CuttingProxy proxy(daemon_.server().tcp_port());
      ASSERT_NE(ConnectBehind(proxy), nullptr);
      connected_bytes = proxy.byte_count();
    }
    int cuts = 0;
    for (bool cut = true; cut; ++cuts) {
      SCOPED_TRACE(testing::Message() << "cut after " << cuts * kStepBytes << " bytes");
      prepare();
      CuttingProxy proxy(daemon_.server().tcp_port(), {connected_bytes + cuts * kStepBytes});
      const auto client = ConnectBehind(proxy);
      ASSERT_NE(client, nullptr);
      call(*client);
      check();
      if (HasFailure()) return;
      cut = proxy.cut_count() > 0;
    }
    EXPECT_GT(cuts, 5);
  }

  absl::StatusOr<v1::Model> Get() {
    v1::GetModelRequest request;
    request.set_name("m");
    return client_->GetModel(request);
  }
  uint64_t Version() {
    const absl::StatusOr<v1::Model> model = Get();
    return model.ok() ? model->version() : 0;
  }
  uint64_t DurableVersion() {
    const absl::StatusOr<v1::Model> model = Get();
    return model.ok() ? model->durable_version() : 0;
  }

  v1::CreateModelRequest Creation() const {
    return CreateRequest("m", source_, v1::BACKWARD_OVERRIDE_NONE);
  }
  void Host() { PW_ASSERT_OK(client_->CreateModel(Creation())); }

  // A switch of the model as it is now.
  v1::SwitchModeRequest Switch() {
    v1::ValidateModeSwitchRequest validate;
    validate.set_name("m");
    validate.mutable_target()->set_format("mxfp8");
    validate.mutable_target()->set_backward_override(v1::BACKWARD_OVERRIDE_DEQUANTIZED);
    const auto verdict = client_->ValidateModeSwitch(validate);
    EXPECT_TRUE(verdict.ok()) << verdict.status();
    v1::SwitchModeRequest request;
    request.set_name("m");
    *request.mutable_target() = validate.target();
    if (verdict.ok()) request.set_fingerprint(verdict->fingerprint());
    return request;
  }

  static v1::SaveModelRequest Save() {
    v1::SaveModelRequest request;
    request.set_name("m");
    return request;
  }

  static v1::DeleteModelRequest Deletion() {
    v1::DeleteModelRequest request;
    request.set_name("m");
    request.set_delete_stored(true);
    return request;
  }
  void Delete() { PW_ASSERT_OK(client_->DeleteModel(Deletion())); }

  // Versions of the model in the store.
  int64_t StoredVersions() const {
    const std::filesystem::directory_iterator manifests(store_ + "/models/m/manifests");
    return std::distance(begin(manifests), end(manifests));
  }

  std::string store_;
  TestDaemon daemon_{[this](ServerOptions& options) { store_ = options.store; }};
  std::unique_ptr<Client> client_ = daemon_.Connect();
  const std::string source_ = daemon_.WriteModel("source");
};

TEST_F(LostReplyTest, ACreateIsDoneOnce) {
  absl::StatusOr<v1::Model> created;
  LoseReply([&](Client& client) { created = client.CreateModel(Creation()); },
            [&] { return Get().ok() && Get()->state() == v1::MODEL_STATE_SERVING; });
  PW_ASSERT_OK(created);
  EXPECT_EQ(created->version(), Version());
  EXPECT_EQ(created->actual_bytes(), daemon_.server().budget().used_bytes(MemoryUse::kWeights));
}

TEST_F(LostReplyTest, ASwitchRaisesTheVersionByOne) {
  Host();
  const uint64_t before = Version();
  const v1::SwitchModeRequest request = Switch();
  absl::StatusOr<v1::SwitchModeResponse> switched;
  LoseReply([&](Client& client) { switched = client.SwitchMode(request); },
            [&] { return Version() != before; });
  PW_ASSERT_OK(switched);
  EXPECT_EQ(switched->version(), before + 1);
  EXPECT_EQ(Version(), before + 1);
}

TEST_F(LostReplyTest, ASaveWritesOneVersionAndSaysSo) {
  Host();
  absl::StatusOr<v1::SaveResult> saved;
  LoseReply([&](Client& client) { saved = client.SaveModel(Save()); },
            [&] { return DurableVersion() != 0; });
  PW_ASSERT_OK(saved);
  EXPECT_TRUE(saved->written());
  EXPECT_GT(saved->written_bytes(), 0);
  EXPECT_EQ(saved->version(), Version());
  EXPECT_EQ(StoredVersions(), 1);
  // A save of its own finds nothing to do.
  PW_ASSERT_OK_AND_ASSIGN(const v1::SaveResult again, client_->SaveModel(Save()));
  EXPECT_FALSE(again.written());
}

TEST_F(LostReplyTest, ADeleteIsDoneOnceAndSaysWhatItFreed) {
  Host();
  const int64_t bytes = Get()->actual_bytes();
  absl::StatusOr<v1::DeleteModelResponse> deleted;
  LoseReply([&](Client& client) { deleted = client.DeleteModel(Deletion()); },
            [&] { return ReasonOf(Get().status()) == Reason::kNotFound; });
  PW_ASSERT_OK(deleted);
  EXPECT_EQ(deleted->freed_bytes(), bytes);
}

// The time that a client tries to come back begins when its connection breaks: work that
// took longer than that, before, is not lost with its reply. (A load of more than 30 s was:
// its client gave up at once.)
TEST_F(LostReplyTest, ALongCallIsMadeAgainAsAShortOneIs) {
  CuttingProxy proxy(daemon_.server().tcp_port());
  Client::Options options;
  options.target = proxy.target();
  options.token = daemon_.token();
  options.retry.delay_first = absl::Milliseconds(1);
  options.retry.give_up_after = absl::Milliseconds(10);
  PW_ASSERT_OK_AND_ASSIGN(const auto client, Client::Connect(options));
  proxy.LoseReplies();
  absl::StatusOr<v1::Model> created;
  std::thread caller([&] { created = client->CreateModel(Creation()); });
  EXPECT_TRUE(Eventually([&] { return Version() != 0; }));
  // Much longer than 10 ms on any machine.
  for (int i = 0; i < 1000; ++i) EXPECT_NE(Version(), 0);
  proxy.CutAll();
  caller.join();
  PW_EXPECT_OK(created);
}

TEST_F(LostReplyTest, ACreateMayBeCutAnywhere) {
  absl::StatusOr<v1::Model> created;
  CutEverywhere([] {}, [&](Client& client) { created = client.CreateModel(Creation()); },
                [&] {
                  PW_ASSERT_OK(created);
                  EXPECT_EQ(created->version(), Version());
                  EXPECT_EQ(created->actual_bytes(),
                            daemon_.server().budget().used_bytes(MemoryUse::kWeights));
                  Delete();
                });
}

TEST_F(LostReplyTest, ASwitchMayBeCutAnywhere) {
  uint64_t before = 0;
  v1::SwitchModeRequest request;
  absl::StatusOr<v1::SwitchModeResponse> switched;
  CutEverywhere(
      [&] {
        Host();
        before = Version();
        request = Switch();
      },
      [&](Client& client) { switched = client.SwitchMode(request); },
      [&] {
        PW_ASSERT_OK(switched);
        // A switch that was given up on the way has used a number and published nothing.
        EXPECT_GT(switched->version(), before);
        EXPECT_EQ(switched->validation().version(), before);
        EXPECT_EQ(switched->version(), Version());
        Delete();
      });
}

TEST_F(LostReplyTest, ASaveMayBeCutAnywhere) {
  absl::StatusOr<v1::SaveResult> saved;
  CutEverywhere([&] { Host(); }, [&](Client& client) { saved = client.SaveModel(Save()); },
                [&] {
                  PW_ASSERT_OK(saved);
                  EXPECT_TRUE(saved->written());
                  EXPECT_EQ(saved->version(), Version());
                  EXPECT_EQ(DurableVersion(), Version());
                  EXPECT_EQ(StoredVersions(), 1);
                  Delete();
                });
}

TEST_F(LostReplyTest, ADeleteMayBeCutAnywhere) {
  absl::StatusOr<v1::DeleteModelResponse> deleted;
  CutEverywhere([&] { Host(); }, [&](Client& client) { deleted = client.DeleteModel(Deletion()); },
                [&] {
                  PW_ASSERT_OK(deleted);
                  EXPECT_GT(deleted->freed_bytes(), 0);
                  EXPECT_THAT(Get(), HasReason(Reason::kNotFound));
                });
}

}  // namespace
}  // namespace planewise
