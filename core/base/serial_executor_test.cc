#include "core/base/serial_executor.h"

#include <vector>

#include "gtest/gtest.h"

namespace planewise {
namespace {

TEST(SerialExecutorTest, RunsInOrderAndBeforeDestruction) {
  std::vector<int> order;
  {
    SerialExecutor executor;
    for (int i = 0; i < 100; ++i) executor.Post([&order, i] { order.push_back(i); });
  }
  ASSERT_EQ(order.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[i], i);
}

TEST(SerialExecutorTest, DelayedTasksRunByDueTime) {
  std::vector<int> order;
  Mutex mutex;
  CondVar done;
  bool finished = false;
  SerialExecutor executor;
  executor.Post([&] {
    // Posted from the executor's thread, so none is due before all are queued.
    executor.PostAfter(absl::Milliseconds(20), [&] {
      order.push_back(2);
      MutexLock lock(mutex);
      finished = true;
      done.NotifyOne();
    });
    executor.PostAfter(absl::Milliseconds(1), [&] { order.push_back(1); });
  });
  MutexLock lock(mutex);
  while (!finished) done.Wait(mutex);
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

}  // namespace
}  // namespace planewise
