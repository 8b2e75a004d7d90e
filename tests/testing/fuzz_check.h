#ifndef PLANEWISE_TESTS_TESTING_FUZZ_CHECK_H_
#define PLANEWISE_TESTS_TESTING_FUZZ_CHECK_H_
// How a fuzz target says that an invariant is broken: the process aborts, which
// both libFuzzer and a replay of the corpus take as the failure.

#include <cstdlib>
#include <iostream>

namespace planewise {

// `invariant` is the one that `holds` tests, as the target's file numbers it.
inline void FuzzCheck(bool holds, const char* invariant) {
  if (holds) return;
  std::cerr << "broken: " << invariant << "\n";
  std::abort();
}

}  // namespace planewise

#endif  // PLANEWISE_TESTS_TESTING_FUZZ_CHECK_H_
