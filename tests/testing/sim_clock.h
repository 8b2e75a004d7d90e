#ifndef PLANEWISE_TESTS_TESTING_SIM_CLOCK_H_
#define PLANEWISE_TESTS_TESTING_SIM_CLOCK_H_
// A clock that moves when the test says so.

#include "absl/time/time.h"
#include "core/base/clock.h"

namespace planewise {

// One thread.
class SimClock final : public Clock {
 public:
  absl::Time Now() const override { return now_; }
  // Simulated calendars begin in the year 2000.
  absl::Time WallTime() const override {
    return absl::FromUnixSeconds(946684800) + (now_ - kStart);
  }

  void Advance(absl::Duration duration) { now_ += duration; }

 private:
  static constexpr absl::Time kStart = absl::UnixEpoch();
  absl::Time now_ = kStart;
};

}  // namespace planewise

#endif  // PLANEWISE_TESTS_TESTING_SIM_CLOCK_H_
