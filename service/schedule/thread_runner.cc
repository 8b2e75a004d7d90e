#include "service/schedule/thread_runner.h"

#include <utility>

namespace planewise {

ThreadRunner::ThreadRunner(Executor& executor) : executor_(executor) {
  for (LaneThread& lane : lanes_) lane.thread = std::thread([this, &lane] { Work(lane); });
}

ThreadRunner::~ThreadRunner() { Stop(); }

void ThreadRunner::Stop() {
  for (LaneThread& lane : lanes_) {
    {
      MutexLock lock(lane.mutex);
      lane.stopping = true;
    }
    lane.wake.NotifyOne();
    if (lane.thread.joinable()) lane.thread.join();
  }
}

void ThreadRunner::Run(Lane lane, absl::AnyInvocable<void() &&> work,
                       absl::AnyInvocable<void() &&> done) {
  LaneThread& thread = lanes_[static_cast<size_t>(lane)];
  {
    MutexLock lock(thread.mutex);
    if (thread.stopping) return;
    thread.queue.push_back({std::move(work), std::move(done)});
  }
  thread.wake.NotifyOne();
}

void ThreadRunner::Work(LaneThread& lane) {
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
