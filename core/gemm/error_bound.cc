#include "core/gemm/error_bound.h"

#include <algorithm>
#include <cmath>

namespace planewise {
namespace {

// Rounding to nearest errs by at most relative * |value| + absolute.
struct Rounding {
  double relative = 0;
  double absolute = 0;  // half the smallest subnormal
  double largest = 0;
};

Rounding RoundingOf(DType dtype) {
  switch (dtype) {
    case DType::kBF16: return {0x1p-8, 0x1p-134, 0x1.FEp127};
    case DType::kF16: return {0x1p-11, 0x1p-25, 65504};
    default: return {0x1p-24, 0x1p-150, 0x1.FFFFFEp127};
  }
}

double AfterRounding(const Rounding& rounding, double value, double error) {
  return error + rounding.relative * (std::abs(value) + error) + rounding.absolute;
}

}  // namespace

double GemmErrorBound(const GemmProblem& problem, const ReferenceElement& exact, double bias) {
  const double k = static_cast<double>(problem.k);
  double error = k * 0x1p-23 * exact.magnitude;
  if (!problem.multiplies_codes()) error += k * 0x1p-126 + exact.subnormal;
  const Rounding f32 = RoundingOf(DType::kF32);
  error = AfterRounding(f32, exact.sum, error);
  if (bias != 0) error = AfterRounding(f32, exact.sum + bias, error);
  if (problem.output == DType::kF32) return error;
  return AfterRounding(RoundingOf(problem.output), exact.sum + bias, error);
}

bool MayBe(const GemmProblem& problem, const ReferenceElement& exact, double bias,
           double actual) {
  const double expected = exact.sum + bias;
  if (!std::isfinite(expected)) {
    return std::isnan(expected) ? std::isnan(actual) : expected == actual;
  }
  if (std::isnan(actual)) return false;
  const double bound = GemmErrorBound(problem, exact, bias);
  if (std::isinf(actual)) {
    return std::signbit(actual) == std::signbit(expected) &&
           std::abs(expected) + bound > RoundingOf(problem.output).largest;
  }
  return std::abs(actual - expected) <= bound;
}

}  // namespace planewise
