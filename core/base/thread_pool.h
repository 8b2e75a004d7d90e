#ifndef PLANEWISE_CORE_BASE_THREAD_POOL_H_
#define PLANEWISE_CORE_BASE_THREAD_POOL_H_
// Threads that share the iterations of one loop: what CPU kernels run on.
//
// Not here: unrelated tasks in order (executor.h).

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/base/mutex.h"

namespace planewise {

// Thread-compatible: one ForEach at a time.
class ThreadPool {
 public:
  // What a ForEach runs: iteration `index`, on thread `worker`, which is below
  // thread_count() and at no other iteration meanwhile.
  using Body = absl::FunctionRef<void(int64_t index, int worker)>;

  // `thread_count` >= 1 counts the caller of ForEach, which works too: with 1,
  // no thread is started.
  explicit ThreadPool(int thread_count);
  ~ThreadPool();

  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int thread_count() const { return static_cast<int>(threads_.size()) + 1; }

  // Calls body for every index in [0, count), each once, and returns when all
  // are done. Idle threads take the next index, so which thread runs which is
  // open: results must not depend on it. `body` must not call ForEach.
  void ForEach(int64_t count, Body body);

 private:
  void Work(int worker);
  void TakeIndices(Body body, int64_t count, int worker);

  Mutex mutex_;
  CondVar start_;
  CondVar done_;
  const Body* body_ ABSL_GUARDED_BY(mutex_) = nullptr;
  int64_t count_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t loop_ ABSL_GUARDED_BY(mutex_) = 0;  // counts ForEach calls
  int working_ ABSL_GUARDED_BY(mutex_) = 0;   // threads not yet done with loop_
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<int64_t> next_ = 0;
  std::vector<std::thread> threads_;
};

}  // namespace planewise

#endif  // PLANEWISE_CORE_BASE_THREAD_POOL_H_
