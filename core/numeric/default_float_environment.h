#ifndef PLANEWISE_CORE_NUMERIC_DEFAULT_FLOAT_ENVIRONMENT_H_
#define PLANEWISE_CORE_NUMERIC_DEFAULT_FLOAT_ENVIRONMENT_H_
// Rounding to nearest and subnormals kept, whatever the calling thread had set.
// Libraries built for speed switch flush-to-zero on in the threads they meet;
// stored bytes must not change with that.

#include <cfenv>

namespace planewise {

// While it lives, the thread computes as IEEE 754 prescribes by default; then
// the earlier mode and exception flags come back. Costs tens of nanoseconds: one
// per matrix, not per block.
class DefaultFloatEnvironment {
 public:
  DefaultFloatEnvironment() {
    std::fegetenv(&callers_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultFloatEnvironment() { std::fesetenv(&callers_); }

  DefaultFloatEnvironment(const DefaultFloatEnvironment&) = delete;
  DefaultFloatEnvironment& operator=(const DefaultFloatEnvironment&) = delete;

 private:
  std::fenv_t callers_;
};

}  // namespace planewise

#endif  // PLANEWISE_CORE_NUMERIC_DEFAULT_FLOAT_ENVIRONMENT_H_
