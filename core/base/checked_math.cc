#include "core/base/checked_math.h"

#include "absl/strings/str_cat.h"
#include "core/base/error.h"

namespace planewise {

absl::StatusOr<int64_t> CheckedAdd(int64_t a, int64_t b) {
  int64_t sum;
  if (__builtin_add_overflow(a, b, &sum)) {
    return Error(Reason::kLimitExceeded, absl::StrCat("size ", a, " + ", b, " exceeds 2^63 - 1"));
  }
  return sum;
}

absl::StatusOr<int64_t> CheckedMultiply(int64_t a, int64_t b) {
  int64_t product;
  if (__builtin_mul_overflow(a, b, &product)) {
    return Error(Reason::kLimitExceeded, absl::StrCat("size ", a, " * ", b, " exceeds 2^63 - 1"));
  }
  return product;
}

}  // namespace planewise
