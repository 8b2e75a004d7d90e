#include "service/schedule/thread_runner.h"

#include <future>
#include <memory>
#include <string>
#include <vector>

#include "core/base/serial_executor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace planewise {
namespace {

using ::testing::ElementsAre;

TEST(ThreadRunnerTest, RunsALaneInOrderAndReportsOnTheExecutor) {
  std::vector<std::string> log;  // touched by the lane, then by the executor: never at once
  std::promise<void> finished;
  SerialExecutor executor;
  {
    ThreadRunner runner(executor);
    std::promise<std::thread::id> executor_thread;
    executor.Post([&] { executor_thread.set_value(std::this_thread::get_id()); });
    const std::thread::id expected = executor_thread.get_future().get();
    for (const char* name : {"a", "b"}) {
      auto work_thread = std::make_shared<std::thread::id>();
      runner.Run(
          Lane::kCompute, [work_thread] { *work_thread = std::this_thread::get_id(); },
          [&log, &finished, name, work_thread, expected] {
            EXPECT_EQ(std::this_thread::get_id(), expected);
            EXPECT_NE(*work_thread, expected);
            log.push_back(name);
            if (log.size() == 2) finished.set_value();
          });
    }
    finished.get_future().get();
  }
  EXPECT_THAT(log, ElementsAre("a", "b"));
}

TEST(ThreadRunnerTest, LanesDoNotWaitForEachOther) {
  SerialExecutor executor;
  ThreadRunner runner(executor);
  std::promise<void> release;
  std::promise<void> compute_done;
  runner.Run(Lane::kStorage, [&] { release.get_future().get(); }, [] {});
  runner.Run(Lane::kCompute, [] {}, [&] { compute_done.set_value(); });
  compute_done.get_future().get();
  release.set_value();
}

TEST(ThreadRunnerTest, FinishesWhatIsQueuedBeforeItEnds) {
  int done = 0;  // the executor's
  {
    SerialExecutor executor;
    ThreadRunner runner(executor);
    for (int i = 0; i < 100; ++i) runner.Run(Lane::kStorage, [] {}, [&done] { ++done; });
  }
  EXPECT_EQ(done, 100);
}

}  // namespace
}  // namespace planewise
