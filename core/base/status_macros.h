#ifndef PLANEWISE_CORE_BASE_STATUS_MACROS_H_
#define PLANEWISE_CORE_BASE_STATUS_MACROS_H_
// Early return on a failed absl::Status or absl::StatusOr.
//
// Not here: adding context to a status (error.h, Annotate).

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Returns from the enclosing function if `expression` is not OK.
#define PW_RETURN_IF_ERROR(expression)                     \
  do {                                                     \
    absl::Status pw_status_ = (expression);                \
    if (!pw_status_.ok()) return pw_status_;               \
  } while (false)

#define PW_STATUS_CONCAT_INNER_(a, b) a##b
#define PW_STATUS_CONCAT_(a, b) PW_STATUS_CONCAT_INNER_(a, b)

// PW_ASSIGN_OR_RETURN(auto plane, Quantize(weight));
#define PW_ASSIGN_OR_RETURN(target, expression) \
  PW_ASSIGN_OR_RETURN_(PW_STATUS_CONCAT_(pw_statusor_, __LINE__), target, expression)

#define PW_ASSIGN_OR_RETURN_(statusor, target, expression) \
  auto statusor = (expression);                            \
  if (!statusor.ok()) return std::move(statusor).status(); \
  target = *std::move(statusor)

#endif  // PLANEWISE_CORE_BASE_STATUS_MACROS_H_
