#ifndef PLANEWISE_CORE_BASE_CHECKED_MATH_H_
#define PLANEWISE_CORE_BASE_CHECKED_MATH_H_
// Arithmetic on sizes that come from files and requests: overflow is an error,
// never a wrap. The plain helpers are for sizes already known to be in range.

#include <cstdint>

#include "absl/status/statusor.h"

namespace planewise {

// INVALID_ARGUMENT / LIMIT_EXCEEDED if the result does not fit.
absl::StatusOr<int64_t> CheckedAdd(int64_t a, int64_t b);
absl::StatusOr<int64_t> CheckedMultiply(int64_t a, int64_t b);

// ceil(a / b) and a rounded up to a multiple of b; a >= 0, b > 0.
constexpr int64_t CeilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t RoundUp(int64_t a, int64_t b) { return CeilDivide(a, b) * b; }

}  // namespace planewise

#endif  // PLANEWISE_CORE_BASE_CHECKED_MATH_H_
