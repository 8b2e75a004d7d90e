#ifndef PLANEWISE_SERVICE_SCHEDULE_THREAD_RUNNER_H_
#define PLANEWISE_SERVICE_SCHEDULE_THREAD_RUNNER_H_
// The BackgroundRunner of real programs: one thread per lane, several for
// kTransport.

#include <array>
#include <deque>
#include <thread>
#include <vector>

#include "core/base/executor.h"
#include "core/base/mutex.h"
#include "service/schedule/background_runner.h"

namespace planewise {

// Thread-safe. What runs on the executor may ask for more work until the
// executor has ended, so stop the runner, end the executor, and only then destroy
// the runner.
class ThreadRunner final : public BackgroundRunner {
 public:
  // One for two cores: while these copy what came, the others receive. At most
  // eight: more have not been measured.
  static int DefaultTransportThreads();

  // `executor` lives until Stop() has returned.
  explicit ThreadRunner(Executor& executor, int transport_threads = DefaultTransportThreads());
  ~ThreadRunner() override;

  // Finishes what was queued, posts its `done`s and joins. Drops what comes
  // later: neither work nor `done` of it run. The destructor does it too.
  void Stop();

  void Run(Lane lane, absl::AnyInvocable<void() &&> work,
           absl::AnyInvocable<void() &&> done) override;

 private:
  struct Item {
    absl::AnyInvocable<void() &&> work;
    absl::AnyInvocable<void() &&> done;
  };
  struct LaneThreads {
    Mutex mutex;
    CondVar wake;
    std::deque<Item> queue ABSL_GUARDED_BY(mutex);
    bool stopping ABSL_GUARDED_BY(mutex) = false;
    std::vector<std::thread> threads;
  };

  void Work(LaneThreads& lane);

  Executor& executor_;
  std::array<LaneThreads, kLaneCount> lanes_;
};

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_SCHEDULE_THREAD_RUNNER_H_
