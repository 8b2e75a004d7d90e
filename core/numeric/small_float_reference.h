#ifndef PLANEWISE_CORE_NUMERIC_SMALL_FLOAT_REFERENCE_H_
#define PLANEWISE_CORE_NUMERIC_SMALL_FLOAT_REFERENCE_H_
// A slow second opinion on narrow floats for the tests of each format: values
// from the defining formula, rounding by comparing with the midpoints between
// neighbours, all exact in double. It shares no code and no method with what it
// checks.

#include <cmath>
#include <cstdint>
#include <vector>

namespace planewise {

class SmallFloatReference {
 public:
  // The magnitudes of codes 0 to `last_code`, of which the last may stand for
  // infinity: then it takes part in rounding as the next power of two.
  SmallFloatReference(int mantissa_bits, int bias, uint32_t last_code) {
    for (uint32_t code = 0; code <= last_code; ++code) {
      const int exponent = static_cast<int>(code >> mantissa_bits);
      const double fraction =
          std::ldexp(code & ((1u << mantissa_bits) - 1), -mantissa_bits);
      values_.push_back(exponent == 0 ? std::ldexp(fraction, 1 - bias)
                                      : std::ldexp(1.0 + fraction, exponent - bias));
    }
  }

  double Value(uint32_t code) const { return values_[code]; }

  // The code nearest to `magnitude` >= 0; of two, the even one; at most the last.
  uint32_t Nearest(double magnitude) const {
    uint32_t low = 0;
    uint32_t high = static_cast<uint32_t>(values_.size()) - 1;
    while (low < high) {  // Finds how many midpoints lie below or at `magnitude`.
      const uint32_t code = (low + high) / 2;
      const double midpoint = (values_[code] + values_[code + 1]) / 2;
      const bool stays = magnitude < midpoint || (magnitude == midpoint && code % 2 == 0);
      if (stays) {
        high = code;
      } else {
        low = code + 1;
      }
    }
    return low;
  }

  // Every value and every midpoint, each with its two neighbours in F32, and
  // beyond the end.
  std::vector<float> Probes() const {
    std::vector<float> probes;
    auto add = [&](double exact) {
      const float value = static_cast<float>(exact);
      probes.insert(probes.end(), {value, std::nextafterf(value, 0.0f),
                                   std::nextafterf(value, HUGE_VALF)});
    };
    for (size_t code = 0; code < values_.size(); ++code) {
      add(values_[code]);
      if (code > 0) add((values_[code - 1] + values_[code]) / 2);
    }
    add(values_.back() * 1.03);
    add(values_.back() * 4);
    return probes;
  }

 private:
  std::vector<double> values_;
};

}  // namespace planewise

#endif  // PLANEWISE_CORE_NUMERIC_SMALL_FLOAT_REFERENCE_H_
