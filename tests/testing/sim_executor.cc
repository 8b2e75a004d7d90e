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
  while (next_timer() <= end) {
    AdvanceTo(next_timer());
    RunUntilIdle();
  }
  AdvanceTo(end);
}

absl::Time SimExecutor::next_timer() const {
  return delayed_.empty() ? absl::InfiniteFuture() : delayed_.begin()->first.first;
}

void SimExecutor::AdvanceTo(absl::Time time) {
  if (time > clock_.Now()) clock_.Advance(time - clock_.Now());
  while (next_timer() <= clock_.Now()) {
    ready_.push_back(std::move(delayed_.begin()->second));
    delayed_.erase(delayed_.begin());
  }
}

}  // namespace planewise
