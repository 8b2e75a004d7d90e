#include "service/schedule/thread_runner.h"

#include <algorithm>
#include <utility>

namespace planewise {

int ThreadRunner::DefaultTransportThreads() {
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()) / 2, 1, 8);
}

ThreadRunner::ThreadRunner(Executor& executor, int transport_threads) : executor_(executor) {
  for (int i = 0; i < kLaneCount; ++i) {
    LaneThreads& lane = lanes_[i];
    const int count = static_cast<Lane>(i) == Lane::kTransport ? transport_threads : 1;
    for (int j = 0; j < count; ++j) lane.threads.emplace_back([this, &lane] { Work(lane); });
  }
}

ThreadRunner::~ThreadRunner() { Stop(); }

void ThreadRunner::Stop() {
  for (LaneThreads& lane : lanes_) {
    {
      MutexLock lock(lane.mutex);
      lane.stopping = true;
    }
    lane.wake.NotifyAll();
    for (std::thread& thread : lane.threads) thread.join();
    lane.threads.clear();
  }
}

void ThreadRunner::Run(Lane lane, absl::AnyInvocable<void() &&> work,
                       absl::AnyInvocable<void() &&> done) {
  LaneThreads& threads = lanes_[static_cast<size_t>(lane)];
  {
    MutexLock lock(threads.mutex);
    if (threads.stopping) return;
    threads.queue.push_back({std::move(work), std::move(done)});
  }
  threads.wake.NotifyOne();
}

void ThreadRunner::Work(LaneThreads& lane) {
  while (true) {
    Item item;
    {
      MutexLock lock(lane.mutex);
      while (lane.queue.empty() && !lane.stopping) lane.wake.Wait(lane.mutex);
      if (lane.queue.empty()) return;
      item = std::move(lane.queue.front());
      lane.queue.pop_front();
    }
    std::move(item.work)();
    // What the work captured goes before anybody hears that it is done.
    item.work = nullptr;
    executor_.Post(std::move(item.done));
  }
}

}  // namespace planewise
