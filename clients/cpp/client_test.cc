#include "clients/cpp/client.h"

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "clients/cpp/cutting_proxy.h"
#include "clients/cpp/fake_server.h"
#include "core/base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/seed.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Client::Options OptionsFor(const FakeServer& server) {
  Client::Options options;
  options.target = server.target();
  options.retry = {.delay_first = absl::Milliseconds(1), .delay_max = absl::Milliseconds(5)};
  return options;
}

v1::CreateModelRequest CreateNamed(const std::string& name) {
  v1::CreateModelRequest request;
  request.set_name(name);
  return request;
}

TEST(ClientTest, ConnectsAndSendsItsVersion) {
  FakeServer server({});
  PW_ASSERT_OK_AND_ASSIGN(const auto client, Client::Connect(OptionsFor(server)));
  EXPECT_EQ(client->capabilities().server_version(), "1.0");
  EXPECT_THAT(client->version_warning(), IsEmpty());
}

TEST(ClientTest, RefusesADaemonOfAnotherMajorVersion) {
  FakeServer server({.api_version = "2.0"});
  EXPECT_THAT(Client::Connect(OptionsFor(server)),
              HasReason(Reason::kClientTooOld, AllOf(HasSubstr("1.0"), HasSubstr("2.0"))));
}

TEST(ClientTest, SaysWhereNoDaemonListensAndWhatToDo) {
  Client::Options options;
  options.target = "unix:///nowhere/planewise.sock";
  options.retry.give_up_after = absl::ZeroDuration();
  EXPECT_THAT(Client::Connect(options),
              HasReason(Reason::kUnavailable,
                        AllOf(HasSubstr(options.target), HasSubstr("start planewised"))));
}

TEST(ClientTest, PresentsItsToken) {
  FakeServer server({.token = "secret"});
  Client::Options options = OptionsFor(server);
  EXPECT_THAT(Client::Connect(options), HasReason(Reason::kUnauthenticated));
  options.token = "secret";
  PW_ASSERT_OK_AND_ASSIGN(const auto client, Client::Connect(options));
  PW_EXPECT_OK(client->OpenSession());
}

TEST(ClientTest, ALostReplyIsAskedForAgainAndChangesOnce) {
  FakeServer server({});
  PW_ASSERT_OK_AND_ASSIGN(const auto client, Client::Connect(OptionsFor(server)));
  for (int i = 0; i < 3; ++i) server.LoseReply("CreateModel", absl::UnavailableError("lost"));
  server.LoseReply("DeleteModel", Error(Reason::kDraining, "draining").WithRetryDelayMs(2));
  EXPECT_THAT(client->CreateModel(CreateNamed("m"))->name(), "m");
  EXPECT_EQ(server.call_count("CreateModel"), 4);
  EXPECT_EQ(server.change_count(), 1);
  PW_EXPECT_OK(client->DeleteModel({}));
  EXPECT_EQ(server.call_count("DeleteModel"), 2);
  EXPECT_EQ(server.change_count(), 2);
}

TEST(ClientTest, KeepsTheCallersRequestId) {
  FakeServer server({});
  PW_ASSERT_OK_AND_ASSIGN(const auto client, Client::Connect(OptionsFor(server)));
  v1::DeleteModelRequest request;
  request.set_request_id("mine");
  PW_EXPECT_OK(client->DeleteModel(request));
  PW_EXPECT_OK(client->DeleteModel(request));
  EXPECT_EQ(server.change_count(), 1);
}

TEST(ClientTest, ErrorsThatStayAreNotRetriedAndKeepTheirDetails) {
  FakeServer server({});
  PW_ASSERT_OK_AND_ASSIGN(const auto client, Client::Connect(OptionsFor(server)));
  server.LoseReply("GetModel",
                   Error(Reason::kNotFound, "model \"m\": not hosted; see ls").With("model", "m"));
  const auto model = client->GetModel({});
  EXPECT_THAT(model, HasReason(Reason::kNotFound, "model \"m\": not hosted; see ls"));
  EXPECT_EQ(*DetailsOf(model.status())->Find("model"), "m");
  EXPECT_EQ(server.call_count("GetModel"), 1);
}

TEST(ClientTest, ADeadlineEndsTheRetries) {
  FakeServer server({});
  PW_ASSERT_OK_AND_ASSIGN(const auto client, Client::Connect(OptionsFor(server)));
  for (int i = 0; i < 1000; ++i) server.LoseReply("GetModel", absl::UnavailableError("lost"));
  const auto model = client->GetModel({}, {.timeout = absl::Milliseconds(30)});
  EXPECT_FALSE(model.ok());
  EXPECT_LT(server.call_count("GetModel"), 1000);
}

TEST(ClientTest, ReportsProgressAndGivesUpWhenToldTo) {
  FakeServer server({});
  PW_ASSERT_OK_AND_ASSIGN(const auto client, Client::Connect(OptionsFor(server)));
  std::vector<int64_t> done_bytes;
  CallOptions options;
  options.progress = [&](const v1::Progress& progress) {
    done_bytes.push_back(progress.done_bytes());
    return true;
  };
  PW_EXPECT_OK(client->CreateModel(CreateNamed("m"), options));
  EXPECT_THAT(done_bytes, ElementsAre(50, 100));
  options.progress = [&](const v1::Progress&) { return done_bytes.empty(); };
  EXPECT_THAT(client->CreateModel(CreateNamed(FakeServer::kEndlessModel), options),
              HasReason(Reason::kCancelled));
}

// Collects tensors; refuses the one named `refused`.
class Collector final : public WeightSink {
 public:
  explicit Collector(std::string refused = "") : refused_(std::move(refused)) {}

  absl::StatusOr<absl::Span<char>> Begin(const v1::ReadTensorHeader& header) override {
    if (header.weight() == refused_) return Error(Reason::kCancelled, "not wanted");
    tensors.emplace_back(header.size_bytes(), '\0');
    return absl::MakeSpan(tensors.back().data(), tensors.back().size());
  }
  absl::Status End(const v1::ReadTensorHeader& header) override {
    whole.push_back(header.weight());
    return absl::OkStatus();
  }

  std::vector<std::string> tensors;
  std::vector<std::string> whole;

 private:
  const std::string refused_;
};

v1::ReadWeightsRequest ReadNamed(const std::vector<std::string>& weights) {
  v1::ReadWeightsRequest request;
  for (const std::string& weight : weights) request.add_weights(weight);
  return request;
}

TEST(ClientTest, ReadsWeightsIntoTheSinksMemory) {
  FakeServer server({});
  PW_ASSERT_OK_AND_ASSIGN(const auto client, Client::Connect(OptionsFor(server)));
  std::string bytes;
  for (int i = 0; i < 12345; ++i) bytes.push_back(static_cast<char>(i * 31));
  for (const std::string& weight : {bytes, std::string()}) {
    server.ServeWeight(weight, false);
    server.LoseReply("ReadWeights", absl::UnavailableError("lost before it began"));
    Collector collector;
    PW_ASSERT_OK(client->ReadWeights(ReadNamed({"a", "b"}), collector));
    EXPECT_THAT(collector.whole, ElementsAre("a", "b"));
    EXPECT_TRUE(collector.tensors[0] == weight && collector.tensors[1] == weight);
  }
}

TEST(ClientTest, ADamagedTensorOrARefusingSinkEndsTheRead) {
  FakeServer server({});
  PW_ASSERT_OK_AND_ASSIGN(const auto client, Client::Connect(OptionsFor(server)));
  server.ServeWeight(std::string(5000, 'w'), true);
  Collector all;
  EXPECT_THAT(client->ReadWeights(ReadNamed({"a"}), all),
              HasReason(Reason::kChecksumMismatch, HasSubstr("weight \"a\"")));
  EXPECT_THAT(all.whole, IsEmpty());
  server.ServeWeight(std::string(5000, 'w'), false);
  Collector one("b");
  EXPECT_THAT(client->ReadWeights(ReadNamed({"a", "b"}), one),
              HasReason(Reason::kCancelled, HasSubstr("not wanted")));
  EXPECT_THAT(one.whole, ElementsAre("a"));
}

// Sessions.

v1::TensorSpec Bf16(int64_t tokens, int64_t width) {
  v1::TensorSpec spec;
  spec.add_shape(tokens);
  spec.add_shape(width);
  spec.set_data_type(v1::DATA_TYPE_BF16);
  return spec;
}

// One forward with its memory.
struct ForwardCall {
  explicit ForwardCall(int64_t tokens) : output(tokens * 8, '\0') {
    *operation.mutable_forward()->mutable_input() = Bf16(tokens, 4);
    for (int64_t i = 0; i < tokens * 8; ++i) input.push_back(static_cast<char>(i * 13 + tokens));
  }
  void ExpectResult() const {
    v1::Operation numbered = operation;
    numbered.set_id(id);
    EXPECT_TRUE(output == FakeSession::ResultBytes(numbered, input)) << "operation " << id;
  }

  absl::StatusOr<OperationTicket> StartOn(ClientSession& session) {
    return session.Start(operation, {input}, {absl::MakeSpan(output.data(), output.size())});
  }

  v1::Operation operation;
  std::string input;
  std::string output;
  uint64_t id = 0;
};

// Ten forwards in flight at once, then their results.
void RunTenForwards(ClientSession& session) {
  std::vector<std::unique_ptr<ForwardCall>> calls;
  std::vector<OperationTicket> tickets;
  for (int i = 0; i < 10; ++i) {
    calls.push_back(std::make_unique<ForwardCall>(i));
    PW_ASSERT_OK_AND_ASSIGN(const OperationTicket ticket, calls.back()->StartOn(session));
    tickets.push_back(ticket);
  }
  for (int i = 0; i < 10; ++i) {
    PW_ASSERT_OK_AND_ASSIGN(const v1::OperationResult result, tickets[i].result());
    calls[i]->id = result.id();
    calls[i]->ExpectResult();
  }
}

TEST(ClientTest, RunsOperationsOfASessionInFlightTogether) {
  FakeServer server({});
  PW_ASSERT_OK_AND_ASSIGN(const auto client, Client::Connect(OptionsFor(server)));
  PW_ASSERT_OK_AND_ASSIGN(const auto session, client->OpenSession());
  RunTenForwards(*session);
  EXPECT_EQ(session->session_id(), 7);
  PW_EXPECT_OK(session->EndStep(1));
  const uint64_t handles[] = {1001};
  PW_EXPECT_OK(session->Release(handles));
  EXPECT_EQ(session->reconnect_count(), 0);
}

TEST(ClientTest, EveryFrameOfTheDaemonMayBreakTheStreamOnce) {
  FakeServer undisturbed({});
  {
    PW_ASSERT_OK_AND_ASSIGN(const auto client, Client::Connect(OptionsFor(undisturbed)));
    PW_ASSERT_OK_AND_ASSIGN(const auto session, client->OpenSession());
    RunTenForwards(*session);
  }
  ASSERT_GT(undisturbed.frame_count(), 20);
  for (int64_t victim = 0; victim < undisturbed.frame_count(); ++victim) {
    SCOPED_TRACE(testing::Message() << "frame " << victim);
    FakeServer server({.fate = [victim](int64_t frame) {
      return frame == victim ? FakeServer::Fate::kBreakStream : FakeServer::Fate::kDeliver;
    }});
    PW_ASSERT_OK_AND_ASSIGN(const auto client, Client::Connect(OptionsFor(server)));
    PW_ASSERT_OK_AND_ASSIGN(const auto session, client->OpenSession());
    RunTenForwards(*session);
    EXPECT_EQ(server.executed_through(), 10);
  }
}

// The connection itself is reset in the midst of frames, with tensors in gRPC's
// hands on both sides.
TEST(ClientTest, ResumesOverConnectionsThatAreCutAnywhere) {
  const FakeSession::Options kLargeWindow = {.input_window_bytes = 1 << 20,
                                             .chunk_bytes_max = 1 << 16};
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 4; ++round) {
    SCOPED_TRACE(testing::Message() << "round " << round);
    FakeServer server({.session = kLargeWindow});
    // Some cuts come while connecting, most in the midst of 3 MB each way.
    std::vector<int64_t> cuts;
    for (int i = 0; i < 12; ++i) cuts.push_back(random() % 6'000'000);
    std::sort(cuts.begin(), cuts.end());
    CuttingProxy proxy(server.port(), cuts);
    Client::Options options = OptionsFor(server);
    options.target = proxy.target();
    PW_ASSERT_OK_AND_ASSIGN(const auto client, Client::Connect(options));
    PW_ASSERT_OK_AND_ASSIGN(const auto session, client->OpenSession());
    std::vector<std::unique_ptr<ForwardCall>> calls;
    std::vector<OperationTicket> tickets;
    for (int i = 0; i < 10; ++i) {
      calls.push_back(std::make_unique<ForwardCall>(40'000));  // 320 kB
      PW_ASSERT_OK_AND_ASSIGN(const OperationTicket ticket, calls.back()->StartOn(*session));
      tickets.push_back(ticket);
    }
    for (int i = 0; i < 10; ++i) {
      PW_ASSERT_OK_AND_ASSIGN(const v1::OperationResult result, tickets[i].result());
      calls[i]->id = result.id();
      calls[i]->ExpectResult();
    }
    EXPECT_EQ(server.executed_through(), 10);
    EXPECT_GT(proxy.cut_count(), 0);
  }
}

TEST(ClientTest, ClosingASessionFailsWhatIsOutstandingAndGivesMemoryBack) {
  // The daemon answers nothing after the handshake.
  FakeServer server({.fate = [](int64_t frame) {
    return frame == 0 ? FakeServer::Fate::kDeliver : FakeServer::Fate::kDrop;
  }});
  PW_ASSERT_OK_AND_ASSIGN(const auto client, Client::Connect(OptionsFor(server)));
  PW_ASSERT_OK_AND_ASSIGN(auto session, client->OpenSession());
  auto call = std::make_unique<ForwardCall>(3);
  PW_ASSERT_OK_AND_ASSIGN(const OperationTicket ticket, call->StartOn(*session));
  EXPECT_FALSE(ticket.Wait(absl::ZeroDuration()));
  session->Close();
  EXPECT_THAT(ticket.result(), HasReason(Reason::kCancelled));
  call.reset();
  session.reset();
}

TEST(ClientTest, ThreadsShareASession) {
  FakeServer server({});
  PW_ASSERT_OK_AND_ASSIGN(const auto client, Client::Connect(OptionsFor(server)));
  PW_ASSERT_OK_AND_ASSIGN(const auto session, client->OpenSession());
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 5; ++round) RunTenForwards(*session);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(server.executed_through(), 200);
}

}  // namespace
}  // namespace planewise
