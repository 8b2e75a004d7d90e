#ifndef PLANEWISE_TESTS_TESTING_SIM_EXECUTOR_H_
#define PLANEWISE_TESTS_TESTING_SIM_EXECUTOR_H_
// An Executor whose tasks the test steps, in simulated time.
//
// Not here: blocking work (sim_background_runner.h).

#include <cstdint>
#include <deque>
#include <map>
#include <utility>

#include "absl/time/time.h"
#include "core/base/executor.h"
#include "tests/testing/sim_clock.h"

namespace planewise {

// One thread. Tasks that are left when it is destroyed do not run.
class SimExecutor final : public Executor {
 public:
  // `clock` outlives it.
  explicit SimExecutor(SimClock& clock) : clock_(clock) {}

  void Post(Task task) override { ready_.push_back(std::move(task)); }
  void PostAfter(absl::Duration delay, Task task) override {
    delayed_.emplace(std::pair(clock_.Now() + delay, next_order_++), std::move(task));
  }

  bool idle() const { return ready_.empty(); }

  // Runs the oldest task that is ready; false if there is none.
  bool RunOne();
  // Runs tasks until none is ready; time stands still.
  void RunUntilIdle();
  // Moves time on by `duration`, running every task when it is due.
  void RunFor(absl::Duration duration);
  // When the next delayed task is due; InfiniteFuture if there is none.
  absl::Time next_timer() const;
  // Moves time on and makes tasks ready that are due then.
  void AdvanceTo(absl::Time time);

 private:
  SimClock& clock_;
  std::deque<Task> ready_;
  // By due time; equal times run in the order posted.
  std::map<std::pair<absl::Time, uint64_t>, Task> delayed_;
  uint64_t next_order_ = 0;
};

}  // namespace planewise

#endif  // PLANEWISE_TESTS_TESTING_SIM_EXECUTOR_H_
