#ifndef PLANEWISE_CORE_BASE_CLOCK_H_
#define PLANEWISE_CORE_BASE_CLOCK_H_
// Time, passed in: logic asks a Clock and never the system.
//
// Not here: the simulated clock (tests/testing/sim_clock.h).

#include "absl/time/time.h"

namespace planewise {

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  // Never goes back; for durations and time-outs.
  virtual absl::Time Now() const = 0;
  // The calendar; for records that people read.
  virtual absl::Time WallTime() const = 0;
};

// The system's clocks; lives for ever.
const Clock& SystemClock();

}  // namespace planewise

#endif  // PLANEWISE_CORE_BASE_CLOCK_H_
