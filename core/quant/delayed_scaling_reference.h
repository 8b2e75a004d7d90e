#ifndef PLANEWISE_CORE_QUANT_DELAYED_SCALING_REFERENCE_H_
#define PLANEWISE_CORE_QUANT_DELAYED_SCALING_REFERENCE_H_
// The state of delayed scaling a second time, for tests: a queue, and division by
// search.

#include <cmath>
#include <cstddef>
#include <deque>
#include <limits>
#include <vector>

#include "core/quant/delayed_scaling.h"
#include "core/quant/fp8_scale_reference.h"

namespace planewise {

// The history as a queue of past magnitudes beside a live one.
class DelayedScalingReference {
 public:
  DelayedScalingReference(size_t length, const DelayedScalingRule& rule)
      : rule_(rule), past_(length - 1, 0) {}

  void Record(float amax) { live_ = std::fmax(live_, amax); }

  void Update() {
    if (live_ == 0) return;
    float largest = live_;
    if (!rule_.most_recent) {
      for (const float amax : past_) largest = std::fmax(largest, amax);
    }
    past_.push_back(live_);
    past_.pop_front();
    live_ = 0;
    if (std::isinf(largest)) return;
    float numerator = rule_.element_max;
    for (int i = 0; i < rule_.margin; ++i) numerator /= 2;
    const float scale =
        std::fmin(NearestQuotient(numerator, largest), std::numeric_limits<float>::max());
    // The inverse of 2^-128 is F32's first infinity.
    if (scale > std::ldexp(1.0f, -128)) scale_ = scale;
  }

  void Resize(size_t length) {
    while (past_.size() > length - 1) past_.pop_front();
    while (past_.size() < length - 1) past_.push_front(0);
  }

  std::vector<float> State() const {
    std::vector<float> state = {scale_, live_};
    state.insert(state.end(), past_.begin(), past_.end());
    return state;
  }

 private:
  DelayedScalingRule rule_;
  float scale_ = 1;
  float live_ = 0;
  std::deque<float> past_;
};

}  // namespace planewise

#endif  // PLANEWISE_CORE_QUANT_DELAYED_SCALING_REFERENCE_H_
