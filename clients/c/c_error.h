#ifndef PLANEWISE_CLIENTS_C_C_ERROR_H_
#define PLANEWISE_CLIENTS_C_C_ERROR_H_
// absl::Status as the C interface's error object.
//
// Not here: what goes over the wire (proto/status/status_codec.h).

#include "absl/status/status.h"
#include "clients/c/planewise.h"

namespace planewise {

// nullptr for OK, else an error that planewise_error_free frees. A status without
// details gets the reason that says no more than its code.
planewise_error* ToCError(const absl::Status& status);

}  // namespace planewise

#endif  // PLANEWISE_CLIENTS_C_C_ERROR_H_
