#include "service/schedule/thread_runner.h"

#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/base/post_and_wait.h"
#include "core/base/serial_executor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace planewise {
namespace {

using ::testing::ElementsAre;

// What threads share with a test stands before the executor and the runner, so
// that it outlives them.

TEST(ThreadRunnerTest, RunsALaneInOrderAndReportsOnTheExecutor) {
  std::vector<std::string> log;  // touched by the lane, then by the executor: never at once
  {
    SerialExecutor executor;
    ThreadRunner runner(executor);
    const std::thread::id expected =
        PostAndWait(executor, [] { return std::this_thread::get_id(); });
    for (const char* name : {"a", "b"}) {
      auto work_thread = std::make_shared<std::thread::id>();
      runner.Run(
          Lane::kCompute, [work_thread] { *work_thread = std::this_thread::get_id(); },
          [&log, name, work_thread, expected] {
            EXPECT_EQ(std::this_thread::get_id(), expected);
            EXPECT_NE(*work_thread, expected);
            log.push_back(name);
          });
    }
    runner.Stop();
  }
  EXPECT_THAT(log, ElementsAre("a", "b"));
}

TEST(ThreadRunnerTest, LanesDoNotWaitForEachOther) {
  std::promise<void> release;
  std::promise<void> compute_done;
  std::future<void> released = release.get_future();
  std::future<void> computed = compute_done.get_future();
  SerialExecutor executor;
  ThreadRunner runner(executor);
  runner.Run(Lane::kStorage, [&] { released.wait(); }, [] {});
  runner.Run(Lane::kCompute, [] {}, [&] { compute_done.set_value(); });
  computed.wait();
  release.set_value();
}

TEST(ThreadRunnerTest, TheTransportLaneRunsSeveralItemsAtOnce) {
  std::promise<void> second_ran;
  std::promise<void> first_done;
  std::future<void> second = second_ran.get_future();
  std::future<void> first = first_done.get_future();
  SerialExecutor executor;
  ThreadRunner runner(executor, /*transport_threads=*/2);
  runner.Run(Lane::kTransport, [&second] { second.wait(); }, [&] { first_done.set_value(); });
  runner.Run(Lane::kTransport, [&second_ran] { second_ran.set_value(); }, [] {});
  first.wait();
}

TEST(ThreadRunnerTest, FinishesWhatIsQueuedBeforeItEnds) {
  int done = 0;  // the executor's
  {
    SerialExecutor executor;
    ThreadRunner runner(executor);
    for (int i = 0; i < 100; ++i) {
      for (const Lane lane : {Lane::kCompute, Lane::kStorage, Lane::kTransport}) {
        runner.Run(lane, [] {}, [&done] { ++done; });
      }
    }
  }
  EXPECT_EQ(done, 300);
}

// Logic that goes on from step to step may take its next one when the runner has
// stopped. (The runner used to be gone by then.)
TEST(ThreadRunnerTest, DropsWhatIsAskedForAfterItStopped) {
  const auto held = std::make_shared<int>(0);
  std::promise<void> release;
  std::future<void> released = release.get_future();
  std::optional<SerialExecutor> executor(std::in_place);
  ThreadRunner runner(*executor);
  executor->Post([&released] { released.wait(); });
  runner.Run(
      Lane::kStorage, [] {},
      [&runner, held] {
        const auto must_not_run = [held] { ADD_FAILURE() << "after Stop()"; };
        for (const Lane lane : {Lane::kStorage, Lane::kCompute, Lane::kTransport}) {
          runner.Run(lane, must_not_run, must_not_run);
        }
      });
  runner.Stop();
  release.set_value();
  executor.reset();
  EXPECT_EQ(held.use_count(), 1);
}

}  // namespace
}  // namespace planewise
