#include "core/base/serial_executor.h"

#include <utility>

#include "core/base/clock.h"

namespace planewise {

SerialExecutor::SerialExecutor() : thread_([this] { Run(); }) {}

SerialExecutor::~SerialExecutor() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake_.NotifyOne();
  thread_.join();
}

void SerialExecutor::Post(Task task) {
  {
    MutexLock lock(mutex_);
    ready_.push_back(std::move(task));
  }
  wake_.NotifyOne();
}

void SerialExecutor::PostAfter(absl::Duration delay, Task task) {
  const absl::Time due = SystemClock().Now() + delay;
  {
    MutexLock lock(mutex_);
    delayed_.push(Delayed{due, next_order_++, std::move(task)});
  }
  wake_.NotifyOne();
}

void SerialExecutor::Run() {
  while (true) {
    Task task;
    {
      MutexLock lock(mutex_);
      while (true) {
        const absl::Time now = SystemClock().Now();
        while (!delayed_.empty() && delayed_.top().due <= now) {
          ready_.push_back(std::move(delayed_.top().task));
          delayed_.pop();
        }
        if (!ready_.empty()) break;
        if (stopping_) return;
        if (delayed_.empty()) {
          wake_.Wait(mutex_);
        } else {
          wake_.WaitFor(mutex_, absl::ToChronoNanoseconds(delayed_.top().due - now));
        }
      }
      task = std::move(ready_.front());
      ready_.pop_front();
    }
    std::move(task)();
  }
}

}  // namespace planewise
