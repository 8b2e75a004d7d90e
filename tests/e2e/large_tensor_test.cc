// Field report 98: tensors larger than any message may be, from a client that was
// given no option for them. They go in chunks, there and back.
#include <cstdint>
#include <cstring>
#include <string>

#include "clients/cpp/client.h"
#include "gtest/gtest.h"
#include "tests/e2e/test_daemon.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
// [64, 64]: X and Y are of one size.
constexpr char kSquareLayer[] = "encoder.layer.0.attention.output.dense";
constexpr int64_t kRowBytes = kLayerIn * sizeof(float);
// Rows of X that differ; then they come again.
constexpr int64_t kRows = 7;

// Small numbers that differ from row to row.
std::string DistinctRows() {
  std::string rows(kRows * kRowBytes, '\0');
  for (int64_t i = 0; i < kRows * kLayerIn; ++i) {
    const float value = static_cast<float>((i * 37) % 101 - 50) / 64;
    std::memcpy(rows.data() + i * sizeof(value), &value, sizeof(value));
  }
  return rows;
}

std::string Repeated(const std::string& rows, int64_t tokens) {
  std::string x;
  x.reserve(tokens * kRowBytes);
  for (int64_t token = 0; token < tokens; ++token) {
    x.append(rows, token % kRows * kRowBytes, kRowBytes);
  }
  return x;
}

struct Case {
  const char* name;
  int64_t tensor_bytes;
};

class LargeTensorTest : public testing::TestWithParam<Case> {
 protected:
  static std::string Forward(ClientSession& session, int64_t tokens, const std::string& x) {
    v1::Forward forward;
    forward.set_model("m");
    forward.set_layer(kSquareLayer);
    forward.set_step(1);
    forward.mutable_input()->set_data_type(v1::DATA_TYPE_F32);
    forward.mutable_input()->add_shape(tokens);
    forward.mutable_input()->add_shape(kLayerIn);
    std::string y(x.size(), '\x7f');
    PW_EXPECT_OK(session.Forward(forward, x, absl::MakeSpan(y)));
    return y;
  }
};

TEST_P(LargeTensorTest, GoesThereAndBackWhole) {
  TestDaemon daemon([](ServerOptions& options) {
    options.memory_limit_bytes = 4 * GetParam().tensor_bytes + 512 * kMiB;
  });
  const auto client = daemon.Connect();
  PW_ASSERT_OK(client->CreateModel(
      CreateRequest("m", daemon.WriteModel("m"), v1::BACKWARD_OVERRIDE_DEQUANTIZED)));
  PW_ASSERT_OK_AND_ASSIGN(const auto session, client->OpenSession());
  const std::string rows = DistinctRows();
  const std::string expected = Forward(*session, kRows, rows);
  const int64_t tokens = GetParam().tensor_bytes / kRowBytes;
  const std::string y = Forward(*session, tokens, Repeated(rows, tokens));
  // A row has the same bits in any company.
  int64_t wrong = 0;
  for (int64_t token = 0; token < tokens; ++token) {
    wrong += std::memcmp(y.data() + token * kRowBytes,
                         expected.data() + token % kRows * kRowBytes, kRowBytes) != 0;
  }
  EXPECT_EQ(wrong, 0) << "of " << tokens << " rows";
}

// gRPC's own limit is 4 MiB, the daemon's for one message 16 MiB.
INSTANTIATE_TEST_SUITE_P(Sizes, LargeTensorTest,
                         testing::Values(Case{"24MiB", 24 * kMiB}, Case{"1GiB", 1024 * kMiB}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace planewise
