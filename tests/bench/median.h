#ifndef PLANEWISE_TESTS_BENCH_MEDIAN_H_
#define PLANEWISE_TESTS_BENCH_MEDIAN_H_
// The figure that benchmarks report of their turns: one slow turn does not move it.

#include <algorithm>
#include <vector>

namespace planewise {

// The upper one of two in the middle. `values` has at least one.
inline double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace planewise

#endif  // PLANEWISE_TESTS_BENCH_MEDIAN_H_
