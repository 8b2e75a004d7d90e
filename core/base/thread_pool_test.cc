#include "core/base/thread_pool.h"

#include <atomic>
#include <numeric>
#include <vector>

#include "gtest/gtest.h"

namespace planewise {
namespace {

TEST(ThreadPoolTest, RunsEveryIndexOnce) {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.thread_count(), threads);
    for (const int64_t count : {0, 1, 2, 3, 1000}) {
      SCOPED_TRACE(testing::Message() << threads << " threads, " << count << " indices");
      std::vector<int> runs(static_cast<size_t>(count), 0);
      pool.ForEach(count, [&](int64_t index, int) { ++runs[static_cast<size_t>(index)]; });
      EXPECT_EQ(runs, std::vector<int>(static_cast<size_t>(count), 1));
    }
  }
}

TEST(ThreadPoolTest, AWorkerRunsOneIndexAtATime) {
  ThreadPool pool(4);
  std::vector<std::atomic<int>> running(4);
  std::atomic<bool> overlapped = false;
  pool.ForEach(2000, [&](int64_t, int worker) {
    std::atomic<int>& mine = running[static_cast<size_t>(worker)];
    if (mine.fetch_add(1) != 0) overlapped = true;
    mine.fetch_sub(1);
  });
  EXPECT_FALSE(overlapped);
}

TEST(ThreadPoolTest, ALoopSeesWhatTheOneBeforeWrote) {
  ThreadPool pool(3);
  std::vector<int64_t> values(64, 0);
  for (int round = 0; round < 200; ++round) {
    pool.ForEach(64, [&](int64_t index, int) {
      // Read what another thread may have written in the round before.
      values[static_cast<size_t>(index)] += round;
    });
  }
  for (const int64_t value : values) EXPECT_EQ(value, 199 * 200 / 2);
}

}  // namespace
}  // namespace planewise
