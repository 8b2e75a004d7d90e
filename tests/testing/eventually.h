#ifndef PLANEWISE_TESTS_TESTING_EVENTUALLY_H_
#define PLANEWISE_TESTS_TESTING_EVENTUALLY_H_
// Waits for what another thread or process does, by asking and not by the clock.

#include "absl/functional/function_ref.h"

namespace planewise {

// Asks `settled` until it is true; false after so many times that it will never be.
// `settled` should take its time, as a call to the daemon does.
inline bool Eventually(absl::FunctionRef<bool()> settled) {
  constexpr int kAttempts = 100'000;
  for (int i = 0; i < kAttempts; ++i) {
    if (settled()) return true;
  }
  return false;
}

}  // namespace planewise

#endif  // PLANEWISE_TESTS_TESTING_EVENTUALLY_H_
