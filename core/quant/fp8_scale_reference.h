#ifndef PLANEWISE_CORE_QUANT_FP8_SCALE_REFERENCE_H_
#define PLANEWISE_CORE_QUANT_FP8_SCALE_REFERENCE_H_
// The F32 scale rule a second time, for tests: division by searching for the
// nearest F32 number in exact integer arithmetic, powers of two by comparing
// with them. Shares neither code nor method with fp8_scale.h. Slow.

#include <bit>
#include <cmath>
#include <cstdint>

#include "core/numeric/dtype.h"

namespace planewise {

// numerator / denominator rounded to F32, ties to even; both positive and
// finite. Infinity above the largest number.
inline float NearestQuotient(float numerator, float denominator) {
  // Compares candidate * denominator with numerator. The product of two F32
  // numbers is exact in long double (64 bits) and in its range.
  const auto excess = [&](long double candidate) {
    return candidate * static_cast<long double>(denominator) - static_cast<long double>(numerator);
  };
  float low = 0;           // excess <= 0
  float high = HUGE_VALF;  // excess > 0
  // Bisects over the numbers in between, by their order.
  while (std::nextafterf(low, HUGE_VALF) < high) {
    const int low_exponent = low == 0 ? -149 : std::ilogb(low);
    const int high_exponent = std::isinf(high) ? 128 : std::ilogb(high);
    float middle =
        high_exponent - low_exponent > 1
            ? std::ldexp(1.0f, (low_exponent + high_exponent) / 2)
            : static_cast<float>(
                  (static_cast<double>(low) + (std::isinf(high) ? 0x1p128 : double{high})) / 2);
    if (middle <= low) middle = std::nextafterf(low, HUGE_VALF);
    if (middle >= high) middle = std::nextafterf(high, 0.0f);
    if (excess(middle) <= 0) {
      low = middle;
    } else {
      high = middle;
    }
  }
  // The midpoint has 25 bits: its product with 24 bits is exact, too.
  const long double above = std::isinf(high) ? 0x1p128L : static_cast<long double>(high);
  const long double beyond = excess((static_cast<long double>(low) + above) / 2);
  if (beyond > 0) return low;
  if (beyond < 0) return high;
  return std::bit_cast<uint32_t>(low) % 2 == 0 ? low : high;
}

class Fp8ScaleReference {
 public:
  // `block` says whether the scale is one of a block of a matrix in `source`, or
  // of a whole tensor.
  Fp8ScaleReference(DType element, bool power_of_two, float epsilon, bool block, DType source)
      : max_(element == DType::kF8E5M2 ? 57344.0f : 448.0f),
        power_of_two_(power_of_two),
        epsilon_(epsilon),
        largest_(!block || source == DType::kF32 ? 0x1.fffffep127
                 : source == DType::kBF16        ? 0x1.fep127
                                                 : 65504.0) {}

  float Encode(float amax) const {
    if (!std::isnan(amax) && amax < epsilon_) amax = epsilon_;
    if (std::isnan(amax) || std::isinf(amax) || amax == 0) return 1;
    float scale = NearestQuotient(max_, amax);
    if (std::isinf(scale)) scale = static_cast<float>(largest_);
    if (!power_of_two_) return scale;
    int exponent = 127;
    while (std::ldexp(1.0, exponent) > static_cast<double>(scale)) --exponent;
    return static_cast<float>(std::ldexp(1.0, exponent));
  }

  float Decode(float amax) const { return NearestQuotient(1, Encode(amax)); }

  float max() const { return max_; }

 private:
  float max_;
  bool power_of_two_;
  float epsilon_;
  double largest_;
};

}  // namespace planewise

#endif  // PLANEWISE_CORE_QUANT_FP8_SCALE_REFERENCE_H_
