#ifndef PLANEWISE_CORE_BASE_POST_AND_WAIT_H_
#define PLANEWISE_CORE_BASE_POST_AND_WAIT_H_
// From a thread of one's own into the logic of an executor: post, and wait for
// what came of it.

#include <future>
#include <memory>
#include <type_traits>

#include "core/base/executor.h"

namespace planewise {

// Runs `action` as a task on `executor` and returns what it returns. Waits for
// ever on the executor's own thread.
template <typename Action>
auto PostAndWait(Executor& executor, Action action) {
  using Result = std::invoke_result_t<Action&>;
  // The task's share: it may still be within set_value when the waiter goes on.
  auto promise = std::make_shared<std::promise<Result>>();
  std::future<Result> result = promise->get_future();
  executor.Post([promise, &action] {
    if constexpr (std::is_void_v<Result>) {
      action();
      promise->set_value();
    } else {
      promise->set_value(action());
    }
  });
  return result.get();
}

}  // namespace planewise

#endif  // PLANEWISE_CORE_BASE_POST_AND_WAIT_H_
