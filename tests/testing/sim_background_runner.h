#ifndef PLANEWISE_TESTS_TESTING_SIM_BACKGROUND_RUNNER_H_
#define PLANEWISE_TESTS_TESTING_SIM_BACKGROUND_RUNNER_H_
// A BackgroundRunner without threads: a lane's work is one step of the test.

#include <array>
#include <cstdint>
#include <deque>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "service/schedule/background_runner.h"
#include "tests/testing/sim_executor.h"

namespace planewise {

// One thread.
class SimBackgroundRunner final : public BackgroundRunner {
 public:
  // `executor` outlives it.
  explicit SimBackgroundRunner(SimExecutor& executor) : executor_(executor) {}

  void Run(Lane lane, absl::AnyInvocable<void() &&> work,
           absl::AnyInvocable<void() &&> done) override;

  bool idle(Lane lane) const { return lanes_[static_cast<size_t>(lane)].empty(); }

  // Runs the lane's next item and posts its `done`; false if there is none.
  bool RunOne(Lane lane);
  // The same with the item that `pick` gives for their number > 0: kTransport
  // keeps no order.
  bool RunAny(Lane lane, absl::FunctionRef<int64_t(int64_t count)> pick);
  // Runs lanes and executor until both are idle; time stands still.
  void RunUntilIdle();

 private:
  struct Item {
    absl::AnyInvocable<void() &&> work;
    absl::AnyInvocable<void() &&> done;
  };

  SimExecutor& executor_;
  std::array<std::deque<Item>, kLaneCount> lanes_;
};

}  // namespace planewise

#endif  // PLANEWISE_TESTS_TESTING_SIM_BACKGROUND_RUNNER_H_
