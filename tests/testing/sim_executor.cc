#include "tests/testing/sim_executor.h"

namespace planewise {

bool SimExecutor::RunOne() {
  if (ready_.empty()) return false;
  Task task = std::move(ready_.front());
  ready_.pop_front();
  std::move(task)();
  return true;
}

void SimExecutor::RunUntilIdle() {
  while (RunOne()) {
  }
}

void SimExecutor::RunFor(absl::Duration duration) {
  const absl::Time end = clock_.Now() + duration;
  RunUntilIdle();
  while (!delayed_.empty() && delayed_.begin()->first.first <= end) {
    AdvanceToNextTimer();
    RunUntilIdle();
  }
  clock_.Advance(end - clock_.Now());
}

bool SimExecutor::AdvanceToNextTimer() {
  if (delayed_.empty()) return false;
  const absl::Time due = delayed_.begin()->first.first;
  if (due > clock_.Now()) clock_.Advance(due - clock_.Now());
  Collect();
  return true;
}

void SimExecutor::Collect() {
  while (!delayed_.empty() && delayed_.begin()->first.first <= clock_.Now()) {
    ready_.push_back(std::move(delayed_.begin()->second));
    delayed_.erase(delayed_.begin());
  }
}

}  // namespace planewise
