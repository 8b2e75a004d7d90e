#include "core/base/thread_pool.h"

namespace planewise {

ThreadPool::ThreadPool(int thread_count) {
  for (int worker = 1; worker < thread_count; ++worker) {
    threads_.emplace_back([this, worker] { Work(worker); });
  }
}

ThreadPool::~ThreadPool() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  start_.NotifyAll();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::ForEach(int64_t count, Body body) {
  if (threads_.empty() || count <= 1) {
    for (int64_t index = 0; index < count; ++index) body(index, 0);
    return;
  }
  {
    MutexLock lock(mutex_);
    body_ = &body;
    count_ = count;
    next_.store(0, std::memory_order_relaxed);  // Published by the mutex.
    working_ = static_cast<int>(threads_.size());
    ++loop_;
  }
  start_.NotifyAll();
  TakeIndices(body, count, 0);
  MutexLock lock(mutex_);
  while (working_ > 0) done_.Wait(mutex_);
  body_ = nullptr;
}

void ThreadPool::TakeIndices(Body body, int64_t count, int worker) {
  for (int64_t index = next_.fetch_add(1, std::memory_order_relaxed); index < count;
       index = next_.fetch_add(1, std::memory_order_relaxed)) {
    body(index, worker);
  }
}

void ThreadPool::Work(int worker) {
  int64_t seen = 0;
  while (true) {
    const Body* body = nullptr;
    int64_t count = 0;
    {
      MutexLock lock(mutex_);
      while (!stopping_ && loop_ == seen) start_.Wait(mutex_);
      if (stopping_) return;
      seen = loop_;
      body = body_;
      count = count_;
    }
    TakeIndices(*body, count, worker);
    {
      MutexLock lock(mutex_);
      --working_;
    }
    done_.NotifyOne();
  }
}

}  // namespace planewise
