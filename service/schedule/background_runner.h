#ifndef PLANEWISE_SERVICE_SCHEDULE_BACKGROUND_RUNNER_H_
#define PLANEWISE_SERVICE_SCHEDULE_BACKGROUND_RUNNER_H_
// Where work runs that blocks or takes long (reading files, quantizing, GEMMs,
// copying), so that logic on the executor never waits. Results come back as tasks
// on the executor.
//
// Not here: the real one (thread_runner.h), the simulated one
// (tests/testing/sim_background_runner.h).

#include "absl/functional/any_invocable.h"

namespace planewise {

// Each lane is a queue that runs one item at a time, in order; but kTransport
// several at once, which may end in any order.
enum class Lane {
  kCompute,    // forward and backward: the device's loop
  kStorage,    // load, save, verify: files
  kTransport,  // bytes from the wire's memory to where they belong
};
inline constexpr int kLaneCount = 3;

// Thread-safe.
class BackgroundRunner {
 public:
  virtual ~BackgroundRunner() = default;

  // Runs `work` on `lane`, then posts `done` on the executor. `done` runs
  // exactly once; or both are dropped, if the runner has been stopped.
  virtual void Run(Lane lane, absl::AnyInvocable<void() &&> work,
                   absl::AnyInvocable<void() &&> done) = 0;
};

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_SCHEDULE_BACKGROUND_RUNNER_H_
