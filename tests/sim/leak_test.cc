// What clients forget costs the daemon nothing: memory stays flat over 100,000
// forwards whose handles are dropped.

#include <malloc.h>

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "tests/sim/scripted_client.h"
#include "tests/testing/integer_model.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

constexpr int kForwards = 100000;
constexpr int kWarmUp = 10000;

// Bytes that the process has allocated.
size_t AllocatedBytes() { return mallinfo2().uordblks; }

TEST(LeakTest, MemoryIsFlatOverForwardsWithDroppedHandles) {
  ScriptedClient client(nullptr);
  const auto x = IntegerMatrix(ScriptedClient::kTokens, ScriptedClient::kIn, 1);
  std::vector<uint64_t> dropped;
  int64_t budget_after_warm_up = 0;
  size_t allocated_after_warm_up = 0;
  for (int i = 1; i <= kForwards; ++i) {
    // Every second one is evaluation: nothing is saved, so nothing is dropped.
    const bool save = i % 2 == 0;
    PW_ASSERT_OK_AND_ASSIGN(const ScriptedClient::Answer answer, client.Forward(x, save, i / 100));
    const uint64_t handle = answer.result.forward().handle();
    ASSERT_EQ(handle != 0, save);
    if (save) dropped.push_back(handle);
    // As the client library does: handles that nobody holds go in one release.
    if (i % 100 == 99) {
      PW_ASSERT_OK(client.Release(dropped));
      dropped.clear();
      PW_ASSERT_OK(client.EndStep(i / 100));
    }
    if (i % 100 != 99 || i < kWarmUp) continue;
    if (budget_after_warm_up == 0) {
      budget_after_warm_up = client.budget().used_bytes();
      allocated_after_warm_up = AllocatedBytes();
    }
    ASSERT_EQ(client.budget().used_bytes(), budget_after_warm_up) << "after " << i;
    ASSERT_EQ(client.budget().used_bytes(MemoryUse::kSavedOperands), 0);
  }
  // A byte for each forward would show.
  EXPECT_LT(AllocatedBytes(), allocated_after_warm_up + (kForwards - kWarmUp) / 2);
  client.Close();
  EXPECT_EQ(client.session_count(), 0);
  EXPECT_EQ(client.lease_count(), 0);
  EXPECT_EQ(client.budget().used_bytes(), client.weights_bytes());
}

}  // namespace
}  // namespace planewise
