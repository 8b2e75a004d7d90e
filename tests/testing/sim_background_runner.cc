#include "tests/testing/sim_background_runner.h"

#include <utility>

namespace planewise {

void SimBackgroundRunner::Run(Lane lane, absl::AnyInvocable<void() &&> work,
                              absl::AnyInvocable<void() &&> done) {
  lanes_[static_cast<size_t>(lane)].push_back({std::move(work), std::move(done)});
}

bool SimBackgroundRunner::RunOne(Lane lane) {
  std::deque<Item>& queue = lanes_[static_cast<size_t>(lane)];
  if (queue.empty()) return false;
  Item item = std::move(queue.front());
  queue.pop_front();
  std::move(item.work)();
  item.work = nullptr;
  executor_.Post(std::move(item.done));
  return true;
}

void SimBackgroundRunner::RunUntilIdle() {
  do {
    executor_.RunUntilIdle();
  } while (RunOne(Lane::kCompute) || RunOne(Lane::kStorage) || RunOne(Lane::kTransport));
}

}  // namespace planewise
