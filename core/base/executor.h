#ifndef PLANEWISE_CORE_BASE_EXECUTOR_H_
#define PLANEWISE_CORE_BASE_EXECUTOR_H_
// Where logic runs. Session, version and scheduling logic own no thread and no
// mutex: every call into them is a task on one Executor, which runs tasks one
// at a time in the order posted. Real programs pass a SerialExecutor (one
// thread), simulations step the tasks themselves.

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"

namespace planewise {

using Task = absl::AnyInvocable<void() &&>;

// Thread-safe.
class Executor {
 public:
  virtual ~Executor() = default;

  // Runs `task` after all that were posted before it; never inside Post().
  virtual void Post(Task task) = 0;

  // Runs `task` once at least `delay` has passed. There is no way to cancel:
  // a task that may have become pointless checks for that itself.
  virtual void PostAfter(absl::Duration delay, Task task) = 0;
};

}  // namespace planewise

#endif  // PLANEWISE_CORE_BASE_EXECUTOR_H_
