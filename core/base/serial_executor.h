#ifndef PLANEWISE_CORE_BASE_SERIAL_EXECUTOR_H_
#define PLANEWISE_CORE_BASE_SERIAL_EXECUTOR_H_
// An Executor on one thread of its own.

#include <cstdint>
#include <deque>
#include <queue>
#include <thread>
#include <vector>

#include "core/base/executor.h"
#include "core/base/mutex.h"

namespace planewise {

// Thread-safe. The destructor runs what was posted without delay, drops what
// waits for its time, and joins the thread.
class SerialExecutor final : public Executor {
 public:
  SerialExecutor();
  ~SerialExecutor() override;

  void Post(Task task) override;
  void PostAfter(absl::Duration delay, Task task) override;

 private:
  struct Delayed {
    absl::Time due;
    uint64_t order;  // Equal times run in the order posted.
    mutable Task task;
    bool operator<(const Delayed& other) const {  // Earliest on top.
      return due != other.due ? due > other.due : order > other.order;
    }
  };

  void Run();

  Mutex mutex_;
  CondVar wake_;
  std::deque<Task> ready_ ABSL_GUARDED_BY(mutex_);
  std::priority_queue<Delayed> delayed_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_order_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace planewise

#endif  // PLANEWISE_CORE_BASE_SERIAL_EXECUTOR_H_
