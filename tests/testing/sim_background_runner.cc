#include "tests/testing/sim_background_runner.h"

#include <utility>

namespace planewise {

void SimBackgroundRunner::Run(Lane lane, absl::AnyInvocable<void() &&> work,
                              absl::AnyInvocable<void() &&> done) {
  lanes_[static_cast<size_t>(lane)].push_back({std::move(work), std::move(done)});
}

bool SimBackgroundRunner::RunOne(Lane lane) {
  return RunAny(lane, [](int64_t) { return 0; });
}

bool SimBackgroundRunner::RunAny(Lane lane, absl::FunctionRef<int64_t(int64_t count)> pick) {
  std::deque<Item>& queue = lanes_[static_cast<size_t>(lane)];
  if (queue.empty()) return false;
  const auto picked = queue.begin() + pick(static_cast<int64_t>(queue.size()));
  Item item = std::move(*picked);
  queue.erase(picked);
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
