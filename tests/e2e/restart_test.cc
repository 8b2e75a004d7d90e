// The daemon as a process: what was saved survives kill -9 byte for byte, a
// drain ends with 0, and start-up failures say what to do.
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "clients/cpp/client.h"
#include "core/base/error.h"
#include "core/base/posix_file_system.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/collected_weights.h"
#include "tests/e2e/daemon_process.h"
#include "tests/e2e/test_daemon.h"
#include "tests/testing/hf_model.h"
#include "tests/testing/scratch_directory.h"
#include "tests/testing/socket_directory.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class RestartTest : public testing::Test {
 protected:
  std::vector<std::string> Flags() const {
    return {"--listen", sockets_.Address(), "--store", directory_.path() + "/store",
            "--root",   directory_.path(),  "--threads", "1",
            "--memory-limit", "1GiB",       "--drain-grace", "0s"};
  }

  std::unique_ptr<Client> Connect() const {
    auto client = Client::Connect(WithoutRetries(sockets_.Address()));
    EXPECT_TRUE(client.ok()) << client.status();
    return client.ok() ? *std::move(client) : nullptr;
  }

  std::string WriteModel() const {
    const std::string path = directory_.path() + "/model";
    PW_EXPECT_OK(WriteHfModel(PosixFileSystem(), path, kTinyBert,
                              RandomTensors(kTinyBert, DType::kF32, 7)));
    return path;
  }

  template <typename Request>
  static Request NamedM() {
    Request request;
    request.set_name("m");
    return request;
  }

  // Every byte of the model: both planes of the weights, and the biases.
  static std::map<std::string, std::string> ReadAll(Client& client) {
    CollectedWeights sink;
    v1::ReadWeightsRequest request;
    request.set_name("m");
    for (const v1::Plane plane : {v1::PLANE_ROW, v1::PLANE_COLUMN, v1::PLANE_HIGH_PRECISION}) {
      request.set_plane(plane);
      PW_EXPECT_OK(client.ReadWeights(request, sink));
    }
    return sink.parts;
  }

  SocketDirectory sockets_;
  ScratchDirectory directory_;
};

TEST_F(RestartTest, SavedModelSurvivesAKillByteForByte) {
  const std::string path = WriteModel();
  v1::GetModelRequest get;
  get.set_name("m");
  v1::Model before;
  std::map<std::string, std::string> bytes;
  {
    DaemonProcess daemon(Flags());
    EXPECT_EQ(daemon.ready_line(), "planewised ready: listening on " + sockets_.Address() +
                                       ", 0 models, store " + directory_.path() + "/store");
    const auto client = Connect();
    PW_ASSERT_OK(client->CreateModel(CreateRequest("m", path, v1::BACKWARD_OVERRIDE_NONE)));
    v1::SaveModelRequest save;
    save.set_name("m");
    PW_ASSERT_OK_AND_ASSIGN(const v1::SaveResult saved, client->SaveModel(save));
    EXPECT_TRUE(saved.written());
    // Not saved: gone with the process.
    PW_ASSERT_OK(client->CreateModel(CreateRequest("lost", path, v1::BACKWARD_OVERRIDE_NONE)));
    PW_ASSERT_OK_AND_ASSIGN(before, client->GetModel(get));
    bytes = ReadAll(*client);
    daemon.Kill();
  }
  ASSERT_FALSE(bytes.empty());

  DaemonProcess daemon(Flags());
  EXPECT_THAT(daemon.ready_line(), HasSubstr(", 1 model, "));
  const auto client = Connect();
  PW_ASSERT_OK_AND_ASSIGN(const v1::Model after, client->GetModel(get));
  EXPECT_EQ(after.version(), before.version());
  EXPECT_EQ(after.durable_version(), before.version());
  EXPECT_EQ(after.recipe().fingerprint(), before.recipe().fingerprint());
  EXPECT_EQ(after.actual_bytes(), before.actual_bytes());
  EXPECT_EQ(ReadAll(*client), bytes);
  v1::VerifyModelRequest verify;
  verify.set_name("m");
  PW_ASSERT_OK_AND_ASSIGN(const v1::VerifyResult verified, client->VerifyModel(verify));
  EXPECT_TRUE(verified.ok());
  get.set_name("lost");
  EXPECT_THAT(client->GetModel(get), HasReason(Reason::kNotFound));

  // A version number is never used twice: "lost" took one that a new model does not get.
  PW_ASSERT_OK_AND_ASSIGN(
      const v1::Model next,
      client->CreateModel(CreateRequest("next", path, v1::BACKWARD_OVERRIDE_NONE)));
  EXPECT_GT(next.version(), before.version() + 1);
  EXPECT_EQ(daemon.Stop(), 0);
}

// kill -9 while a model loads, at each message of its progress: nothing of it is
// there afterwards.
TEST_F(RestartTest, KilledInALoad) {
  const std::string path = WriteModel();
  for (int step = 1;; ++step) {
    SCOPED_TRACE(step);
    DaemonProcess daemon(Flags());
    EXPECT_THAT(daemon.ready_line(), HasSubstr(", 0 models, "));
    int seen = 0;
    CallOptions options;
    options.progress = [&](const v1::Progress&) {
      if (++seen == step) daemon.Kill();
      return true;
    };
    const absl::StatusOr<v1::Model> model = Connect()->CreateModel(
        CreateRequest("m", path, v1::BACKWARD_OVERRIDE_NONE), options);
    if (seen < step) {
      PW_EXPECT_OK(model);
      EXPECT_GT(step, 1);
      break;
    }
  }
}

// kill -9 while a second version is saved: one of the two is there, whole, and
// saving goes on.
TEST_F(RestartTest, KilledInASave) {
  const std::string path = WriteModel();
  uint64_t durable = 0;
  {
    DaemonProcess daemon(Flags());
    const auto client = Connect();
    PW_ASSERT_OK(client->CreateModel(CreateRequest("m", path, v1::BACKWARD_OVERRIDE_NONE)));
    PW_ASSERT_OK_AND_ASSIGN(const v1::SaveResult saved,
                            client->SaveModel(NamedM<v1::SaveModelRequest>()));
    durable = saved.version();
  }
  for (int step = 1;; ++step) {
    SCOPED_TRACE(step);
    DaemonProcess daemon(Flags());
    const auto client = Connect();
    PW_ASSERT_OK_AND_ASSIGN(const v1::Model stored,
                            client->GetModel(NamedM<v1::GetModelRequest>()));
    EXPECT_GE(stored.version(), durable);
    PW_ASSERT_OK_AND_ASSIGN(const v1::VerifyResult verified,
                            client->VerifyModel(NamedM<v1::VerifyModelRequest>()));
    EXPECT_TRUE(verified.ok());
    durable = stored.version();

    // Another model under its name, so that every byte of it is new.
    PW_ASSERT_OK(client->DeleteModel(NamedM<v1::DeleteModelRequest>()));
    PW_ASSERT_OK(client->CreateModel(CreateRequest("m", path, v1::BACKWARD_OVERRIDE_NONE)));
    int seen = 0;
    CallOptions options;
    options.progress = [&](const v1::Progress&) {
      if (++seen == step) daemon.Kill();
      return true;
    };
    const absl::StatusOr<v1::SaveResult> saved =
        client->SaveModel(NamedM<v1::SaveModelRequest>(), options);
    if (seen < step) {
      PW_ASSERT_OK(saved);
      EXPECT_GT(saved->version(), durable);
      EXPECT_GT(step, 1);
      break;
    }
  }
}

// kill -9 about the time of a switch: what was saved is there.
TEST_F(RestartTest, KilledInASwitch) {
  const std::string path = WriteModel();
  v1::SwitchModeRequest change;
  v1::Model saved;
  for (int round = 0; round < 4; ++round) {
    SCOPED_TRACE(round);
    DaemonProcess daemon(Flags());
    const auto client = Connect();
    if (round == 0) {
      PW_ASSERT_OK(client->CreateModel(CreateRequest("m", path, v1::BACKWARD_OVERRIDE_NONE)));
      PW_ASSERT_OK(client->SaveModel(NamedM<v1::SaveModelRequest>()));
      PW_ASSERT_OK_AND_ASSIGN(saved, client->GetModel(NamedM<v1::GetModelRequest>()));
    }
    PW_ASSERT_OK_AND_ASSIGN(const v1::Model model, client->GetModel(NamedM<v1::GetModelRequest>()));
    EXPECT_EQ(model.version(), saved.version());
    EXPECT_EQ(model.recipe().fingerprint(), saved.recipe().fingerprint());
    PW_ASSERT_OK_AND_ASSIGN(const v1::VerifyResult verified,
                            client->VerifyModel(NamedM<v1::VerifyModelRequest>()));
    EXPECT_TRUE(verified.ok());
    auto validate = NamedM<v1::ValidateModeSwitchRequest>();
    validate.mutable_target()->set_format("mxfp8");
    validate.mutable_target()->set_backward_override(v1::BACKWARD_OVERRIDE_DEQUANTIZED);
    PW_ASSERT_OK_AND_ASSIGN(const v1::ValidateModeSwitchResponse verdict,
                            client->ValidateModeSwitch(validate));
    change = NamedM<v1::SwitchModeRequest>();
    *change.mutable_target() = validate.target();
    change.set_fingerprint(verdict.fingerprint());
    std::thread caller([&] { client->SwitchMode(change).status().IgnoreError(); });
    daemon.Kill();
    caller.join();
  }
}

TEST_F(RestartTest, SecondDaemonOnAStoreIsRefused) {
  DaemonProcess first(Flags());
  SocketDirectory other;
  std::vector<std::string> flags = Flags();
  flags[1] = other.Address();
  DaemonProcess second(flags);
  EXPECT_EQ(second.ready_line(), "");
  EXPECT_EQ(second.Wait(), 1);
  EXPECT_THAT(second.ErrorText(), AllOf(HasSubstr("planewised: "), HasSubstr("/store")));
  EXPECT_EQ(first.Stop(), 0);
}

TEST_F(RestartTest, SecondDaemonOnASocketIsRefused) {
  DaemonProcess first(Flags());
  std::vector<std::string> flags = Flags();
  flags[3] += "2";
  DaemonProcess second(flags);
  EXPECT_EQ(second.Wait(), 1);
  EXPECT_THAT(second.ErrorText(), HasSubstr("another daemon listens there"));
  // The first one still answers.
  EXPECT_NE(Connect(), nullptr);
}

TEST_F(RestartTest, RootThatIsMissingIsNamed) {
  std::vector<std::string> flags = Flags();
  flags[5] += "/missing";
  DaemonProcess daemon(flags);
  EXPECT_EQ(daemon.Wait(), 1);
  EXPECT_THAT(daemon.ErrorText(), AllOf(HasSubstr("--root"), HasSubstr("/missing")));
}

// Each names the flag or path at fault and what to do, and leaves no socket.
TEST_F(RestartTest, PlacesThatCannotBeUsed) {
  const SocketDirectory other;
  const std::string file = other.Address().substr(std::string("unix://").size());
  std::ofstream(file) << "not a directory";
  const struct {
    const char* name;
    int flag;
    std::string value;
    int exit_code;
    const char* says;
  } kCases[] = {
      {"socket path too long", 1, "unix://" + directory_.path() + "/" + std::string(120, 's'), 2,
       "at most 107"},
      {"socket below a file", 1, other.Address() + "/s", 1, "of the socket is no directory"},
      {"store that cannot be made", 3, "/proc/planewise", 1, "--store /proc/planewise"},
      {"store that is a file", 3, file, 1, "Not a directory"},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.name);
    std::vector<std::string> flags = Flags();
    flags[c.flag] = c.value;
    DaemonProcess daemon(flags);
    EXPECT_EQ(daemon.Wait(), c.exit_code);
    EXPECT_THAT(daemon.ErrorText(), AllOf(HasSubstr("planewised: "), HasSubstr(c.says)));
  }
}

TEST_F(RestartTest, DrainEndsOpenSessionsAndExitsWithZero) {
  DaemonProcess daemon(Flags());
  const auto client = Connect();
  PW_ASSERT_OK_AND_ASSIGN(const auto session, client->OpenSession());
  EXPECT_EQ(daemon.Stop(), 0);
  EXPECT_THAT(daemon.ErrorText(), HasSubstr("\"event\":\"drained\""));
}

TEST_F(RestartTest, PortFileHasThePort) {
  std::vector<std::string> flags = Flags();
  const std::string port_file = directory_.path() + "/port";
  for (const char* flag : {"--listen", "127.0.0.1:0", "--token-file"}) flags.push_back(flag);
  flags.push_back(directory_.path() + "/token");
  flags.push_back("--port-file");
  flags.push_back(port_file);
  DaemonProcess daemon(flags);
  std::ifstream file(port_file);
  int port = 0;
  ASSERT_TRUE(file >> port);
  EXPECT_THAT(daemon.ready_line(), HasSubstr("127.0.0.1:" + std::to_string(port)));
  EXPECT_EQ(daemon.Stop(), 0);
}

TEST_F(RestartTest, MistakeInTheFlagsIsExitCodeTwo) {
  DaemonProcess daemon({"--memory-limit", "8"});
  EXPECT_EQ(daemon.Wait(), 2);
  EXPECT_THAT(daemon.ErrorText(), HasSubstr("8GiB"));
}

}  // namespace
}  // namespace planewise
