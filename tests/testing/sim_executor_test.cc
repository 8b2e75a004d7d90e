#include "tests/testing/sim_executor.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/sim_background_runner.h"
#include "tests/testing/sim_clock.h"

namespace planewise {
namespace {

using ::testing::ElementsAre;

TEST(SimExecutorTest, RunsInOrderPostedAndNeverInsidePost) {
  SimClock clock;
  SimExecutor executor(clock);
  std::vector<int> log;
  executor.Post([&] {
    executor.Post([&] { log.push_back(3); });
    log.push_back(1);
  });
  executor.Post([&] { log.push_back(2); });
  EXPECT_TRUE(log.empty());
  executor.RunUntilIdle();
  EXPECT_THAT(log, ElementsAre(1, 2, 3));
}

TEST(SimExecutorTest, DelayedTasksRunWhenDue) {
  SimClock clock;
  SimExecutor executor(clock);
  const absl::Time start = clock.Now();
  std::vector<std::pair<int, absl::Duration>> log;
  const auto note = [&](int id) { return [&, id] { log.push_back({id, clock.Now() - start}); }; };
  executor.PostAfter(absl::Seconds(2), note(2));
  executor.PostAfter(absl::Seconds(1), note(1));
  executor.PostAfter(absl::Seconds(2), note(3));
  executor.RunUntilIdle();
  EXPECT_TRUE(log.empty());
  executor.RunFor(absl::Seconds(5));
  EXPECT_THAT(log, ElementsAre(std::pair(1, absl::Seconds(1)), std::pair(2, absl::Seconds(2)),
                               std::pair(3, absl::Seconds(2))));
  EXPECT_EQ(clock.Now() - start, absl::Seconds(5));
}

TEST(SimBackgroundRunnerTest, DoneComesAsATaskAfterTheWork) {
  SimClock clock;
  SimExecutor executor(clock);
  SimBackgroundRunner runner(executor);
  std::vector<std::string> log;
  for (const Lane lane : {Lane::kStorage, Lane::kCompute}) {
    const std::string name = lane == Lane::kStorage ? "storage" : "compute";
    runner.Run(lane, [&log, name] { log.push_back(name); },
               [&log, name] { log.push_back(name + " done"); });
  }
  EXPECT_TRUE(runner.RunOne(Lane::kStorage));
  EXPECT_THAT(log, ElementsAre("storage"));
  runner.RunUntilIdle();
  EXPECT_THAT(log, ElementsAre("storage", "storage done", "compute", "compute done"));
  EXPECT_FALSE(runner.RunOne(Lane::kCompute));
}

}  // namespace
}  // namespace planewise
