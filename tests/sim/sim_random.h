#ifndef PLANEWISE_TESTS_SIM_SIM_RANDOM_H_
#define PLANEWISE_TESTS_SIM_SIM_RANDOM_H_
// The one source of chance of a simulation: the same seed, the same run.

#include <cstdint>
#include <random>

namespace planewise {

// One thread.
class SimRandom {
 public:
  explicit SimRandom(uint64_t seed) : bits_(seed) {}

  uint64_t Bits() { return bits_(); }
  // In [0, count), count > 0.
  int64_t Below(int64_t count) { return static_cast<int64_t>(bits_() % count); }
  // In [0, 1).
  double Fraction() { return static_cast<double>(bits_() >> 11) * 0x1p-53; }
  bool OneIn(int64_t count) { return Below(count) == 0; }

 private:
  std::mt19937_64 bits_;
};

}  // namespace planewise

#endif  // PLANEWISE_TESTS_SIM_SIM_RANDOM_H_
