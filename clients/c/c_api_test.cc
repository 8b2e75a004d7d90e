// The C interface as its callers see it, against a daemon in this process.
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "clients/c/planewise.h"
#include "clients/cpp/fake_server.h"
#include "core/base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace planewise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct ErrorDeleter {
  void operator()(planewise_error* error) const { planewise_error_free(error); }
};
using OwnedError = std::unique_ptr<planewise_error, ErrorDeleter>;

void ExpectOk(planewise_error* error) {
  const OwnedError owned(error);
  EXPECT_EQ(error, nullptr) << planewise_error_message(error);
}

void ExpectError(planewise_error* error, absl::string_view reason, absl::string_view message) {
  const OwnedError owned(error);
  ASSERT_NE(error, nullptr);
  EXPECT_EQ(planewise_error_reason(error), reason);
  EXPECT_THAT(planewise_error_message(error), HasSubstr(std::string(message)));
}

class CApiTest : public testing::Test {
 protected:
  void SetUp() override {
    planewise_client_options options{};
    options.struct_size = sizeof options;
    options.target = server_.target().c_str();
    ExpectOk(planewise_client_connect(&options, &client_));
    ASSERT_NE(client_, nullptr);
    ExpectOk(planewise_session_open(client_, nullptr, &session_));
    ASSERT_NE(session_, nullptr);
  }
  void TearDown() override {
    planewise_session_free(session_);
    planewise_client_free(client_);
  }

  FakeServer server_{{}};
  planewise_client* client_ = nullptr;
  planewise_session* session_ = nullptr;
};

TEST_F(CApiTest, CallsTakeAndGiveJson) {
  char* response = nullptr;
  ExpectOk(planewise_client_call(client_, "GetModel", R"({"name": "m"})", 0, nullptr, nullptr,
                                 &response));
  ASSERT_NE(response, nullptr);
  const auto model = nlohmann::json::parse(response);
  planewise_string_free(response);
  EXPECT_EQ(model["name"], "m");
  EXPECT_EQ(model["planned_bytes"], "0");  // 64 bits: a string
  EXPECT_EQ(model["state"], "MODEL_STATE_UNSPECIFIED");
}

TEST_F(CApiTest, ProgressComesAsJsonAndMayGiveUp) {
  std::vector<std::string> seen;
  const auto record = [](void* user_data, const char* progress) -> int32_t {
    auto& events = *static_cast<std::vector<std::string>*>(user_data);
    events.push_back(nlohmann::json::parse(progress)["done_bytes"]);
    return 0;
  };
  char* response = nullptr;
  ExpectOk(planewise_client_call(client_, "CreateModel", R"({"name": "m"})", 0, record, &seen,
                                 &response));
  EXPECT_THAT(seen, ElementsAre("50", "100"));
  EXPECT_EQ(nlohmann::json::parse(response)["planned_bytes"], "1099511627776");
  planewise_string_free(response);
  const auto give_up = [](void*, const char*) -> int32_t { return 1; };
  ExpectError(planewise_client_call(client_, "CreateModel", R"({"name": "endless"})", 0, give_up,
                                    nullptr, &response),
              "CANCELLED", "gave the call up");
}

TEST_F(CApiTest, SaysWhatIsWrongWithACall) {
  char* response = nullptr;
  ExpectError(planewise_client_call(client_, "Nope", nullptr, 0, nullptr, nullptr, &response),
              "INVALID_REQUEST", "GetCapabilities");
  ExpectError(planewise_client_call(client_, "GetModel", R"({"nome": "m"})", 0, nullptr, nullptr,
                                    &response),
              "INVALID_REQUEST", "nome");
  ExpectError(planewise_client_call(client_, "GetModel", "[", 0, nullptr, nullptr, &response),
              "INVALID_REQUEST", "planewise.v1.GetModelRequest");
  ExpectError(planewise_client_call(client_, nullptr, nullptr, 0, nullptr, nullptr, &response),
              "INVALID_REQUEST", "method \"\"");
}

TEST_F(CApiTest, ErrorsCarryAllTheirParts) {
  server_.LoseReply("GetModel",
                    Error(Reason::kColumnwiseMissing, "weight \"q\": no column plane")
                        .With("weight", "q")
                        .WithViolation({Reason::kColumnwiseMissing, "q", "not stored"}));
  char* response = nullptr;
  const OwnedError error(
      planewise_client_call(client_, "GetModel", nullptr, 0, nullptr, nullptr, &response));
  ASSERT_NE(error, nullptr);
  EXPECT_EQ(planewise_error_code(error.get()), 9);
  EXPECT_STREQ(planewise_error_code_name(error.get()), "FAILED_PRECONDITION");
  EXPECT_STREQ(planewise_error_reason(error.get()), "COLUMNWISE_MISSING");
  EXPECT_STREQ(planewise_error_message(error.get()), "weight \"q\": no column plane");
  EXPECT_STREQ(planewise_error_retry(error.get()), "never");
  const auto details = nlohmann::json::parse(planewise_error_details(error.get()));
  EXPECT_EQ(details["metadata"]["weight"], "q");
  EXPECT_EQ(details["violations"][0]["reason"], "COLUMNWISE_MISSING");
  EXPECT_EQ(details["violations"][0]["subject"], "q");
  EXPECT_FALSE(details.contains("retry_delay_ms"));
}

TEST_F(CApiTest, ReadsWeightsIntoMemoryThatTheCallerPlaces) {
  server_.ServeWeight("eight888", false);
  std::vector<std::string> tensors;
  tensors.reserve(2);  // The memory must not move.
  const auto place = [](void* user_data, const planewise_tensor_header* header) -> void* {
    EXPECT_STREQ(header->weight, "w");
    EXPECT_EQ(header->version, 3);
    EXPECT_EQ(header->rank, 1);
    EXPECT_EQ(header->shape[0], 8);
    EXPECT_EQ(header->size_bytes, 8);
    auto& all = *static_cast<std::vector<std::string>*>(user_data);
    all.emplace_back(header->size_bytes, '\0');
    return all.back().data();
  };
  const char request[] = R"({"weights": ["w", "w"]})";
  ExpectOk(planewise_client_read_weights(client_, request, place, &tensors));
  EXPECT_THAT(tensors, ElementsAre("eight888", "eight888"));
  const auto refuse = [](void*, const planewise_tensor_header*) -> void* { return nullptr; };
  ExpectError(planewise_client_read_weights(client_, request, refuse, nullptr), "CANCELLED",
              "no memory for weight \"w\"");
}

// X and Y of one forward; BF16 [3, 4].
struct ForwardMemory {
  ForwardMemory() {
    request.struct_size = sizeof request;
    request.model = "m";
    request.layer = "q";
    request.input = {input.data(), static_cast<int64_t>(input.size()), 2, shape, 2};
    request.output = {output.data(), static_cast<int64_t>(output.size())};
    request.save_for_backward = 1;
  }
  int64_t shape[2] = {3, 4};
  std::string input = "abcdefghijklmnopqrstuvwx";
  std::string output = std::string(24, '\0');
  planewise_forward_request request{};
};

TEST_F(CApiTest, ForwardAndBackwardGoThroughTheCallersMemory) {
  ForwardMemory forward;
  planewise_forward_result result{};
  result.struct_size = sizeof result;
  ExpectOk(planewise_forward(session_, &forward.request, &result));
  EXPECT_EQ(forward.output, "bcdefghijklmnopqrstuvwxy");  // The fake adds the operation's id.
  EXPECT_EQ(result.handle, 1001);
  EXPECT_EQ(result.version, 1);
  EXPECT_STREQ(result.gemm_path, "expanded");

  std::string dx(24, '\0');
  std::string dw(64, '\0');
  planewise_backward_request backward{};
  backward.struct_size = sizeof backward;
  backward.handle = result.handle;
  backward.output_gradient = forward.request.input;
  backward.want_input_gradient = 1;
  backward.input_gradient = {dx.data(), 24};
  backward.want_weight_gradient = 1;
  backward.weight_gradient = {dw.data(), 64};
  planewise_backward_result backward_result{};
  backward_result.struct_size = sizeof backward_result;
  ExpectOk(planewise_backward(session_, &backward, &backward_result));
  EXPECT_EQ(dx, "cdefghijklmnopqrstuvwxyz");
  EXPECT_EQ(backward_result.version, 1);
  ExpectOk(planewise_end_step(session_, 0));
  ExpectOk(planewise_release(session_, &result.handle, 1));
}

TEST_F(CApiTest, OperationsRunWhileTheCallerDoesOtherThings) {
  ForwardMemory forward;
  planewise_operation* operation = nullptr;
  ExpectOk(planewise_forward_start(session_, &forward.request, &operation));
  int32_t done = 0;
  ExpectOk(planewise_operation_wait(operation, -1, &done));
  EXPECT_EQ(done, 1);
  planewise_forward_result result{};
  result.struct_size = sizeof result;
  ExpectOk(planewise_operation_forward_result(operation, &result));
  EXPECT_EQ(result.handle, 1001);
  planewise_backward_result other{};
  other.struct_size = sizeof other;
  ExpectError(planewise_operation_backward_result(operation, &other), "INVALID_REQUEST",
              "not a backward's");
  planewise_operation_free(operation);
  ExpectOk(planewise_release_start(session_, &result.handle, 1, &operation));
  planewise_operation_free(operation);
}

TEST_F(CApiTest, ACloseEndsOperationsAndTheSession) {
  planewise_session_close(session_);
  ForwardMemory forward;
  ExpectError(planewise_forward(session_, &forward.request, nullptr), "CANCELLED", "closed");
}

// Garbage collectors free in the order that they like.
TEST_F(CApiTest, ASessionOutlivesItsClient) {
  planewise_client_free(client_);
  client_ = nullptr;
  ForwardMemory forward;
  ExpectOk(planewise_forward(session_, &forward.request, nullptr));
  EXPECT_EQ(forward.output, "bcdefghijklmnopqrstuvwxy");
}

TEST_F(CApiTest, RefusesStructsThatMakeNoSense) {
  struct Case {
    absl::string_view name;
    void (*spoil)(planewise_forward_request&);
    absl::string_view reason;
    absl::string_view message;
  };
  const Case kCases[] = {
      {"no size", [](auto& request) { request.struct_size = 0; }, "INVALID_REQUEST",
       "struct_size 0"},
      {"of a newer library", [](auto& request) { request.struct_size += 8; }, "INVALID_REQUEST",
       "struct_size"},
      {"no memory", [](auto& request) { request.input.data = nullptr; }, "INVALID_REQUEST",
       "forward input: no memory of 24 bytes"},
      {"a negative size", [](auto& request) { request.output.size_bytes = -1; }, "INVALID_REQUEST",
       "-1 bytes"},
      {"no shape", [](auto& request) { request.input.shape = nullptr; }, "INVALID_REQUEST",
       "no shape of 2 dimensions"},
      {"an unknown type", [](auto& request) { request.input.data_type = 99; }, "DTYPE_UNSUPPORTED",
       "element type"},
      {"a size that is not the shape's", [](auto& request) { request.input.size_bytes = 23; },
       "SHAPE_MISMATCH", "23 bytes, required 24"},
      {"an output that is too small", [](auto& request) { request.output.size_bytes = 23; },
       "SHAPE_MISMATCH", "23 bytes, required 24"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(std::string(c.name));
    ForwardMemory forward;
    c.spoil(forward.request);
    ExpectError(planewise_forward(session_, &forward.request, nullptr), c.reason, c.message);
  }
  ExpectError(planewise_forward(session_, nullptr, nullptr), "INVALID_REQUEST", "NULL");
}

// A caller whose header had fewer fields: what it does not know is 0, and is not
// written.
TEST_F(CApiTest, UnderstandsStructsOfAnOlderHeader) {
  ForwardMemory forward;
  forward.request.non_finite_policy = 77;  // Beyond what the older header had.
  forward.request.struct_size = offsetof(planewise_forward_request, non_finite_policy);
  planewise_forward_result result;
  std::memset(&result, 0x55, sizeof result);
  result.struct_size = offsetof(planewise_forward_result, gemm_path);
  ExpectOk(planewise_forward(session_, &forward.request, &result));
  EXPECT_EQ(result.handle, 1001);
  EXPECT_EQ(result.gemm_path[0], 0x55);
}

TEST(CApiWithoutDaemonTest, FreesTakeNull) {
  planewise_error_free(nullptr);
  planewise_string_free(nullptr);
  planewise_client_free(nullptr);
  planewise_session_free(nullptr);
  planewise_operation_free(nullptr);
}

}  // namespace
}  // namespace planewise
