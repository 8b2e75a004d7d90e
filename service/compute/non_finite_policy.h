#ifndef PLANEWISE_SERVICE_COMPUTE_NON_FINITE_POLICY_H_
#define PLANEWISE_SERVICE_COMPUTE_NON_FINITE_POLICY_H_
// What to do with a NaN or an infinity in a tensor that comes from outside.

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/tensor/matrix_view.h"

namespace planewise {

enum class NonFinitePolicy : uint8_t {
  kFormat,  // whatever the format's arithmetic gives
  kReject,
};

// INVALID_ARGUMENT / NON_FINITE_IN_TENSOR with `name` and the first index under
// kReject, if `tensor` holds one.
absl::Status CheckFinite(NonFinitePolicy policy, absl::string_view name, MatrixView tensor);

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_COMPUTE_NON_FINITE_POLICY_H_
