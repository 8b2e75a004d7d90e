#ifndef PLANEWISE_SERVICE_SESSION_SESSION_ERROR_H_
#define PLANEWISE_SERVICE_SESSION_SESSION_ERROR_H_
// The errors that several parts of a session give.

#include <cstdint>

#include "absl/strings/string_view.h"
#include "core/base/error.h"

namespace planewise {

// INVALID_ARGUMENT / PROTOCOL_VIOLATION: 'SUBJECT: WHAT'. `subject` is for
// example "session 7".
Error ProtocolViolation(absl::string_view subject, absl::string_view what);

// INVALID_ARGUMENT / LIMIT_EXCEEDED: 'SUBJECT: WHAT; NAME = LIMIT'. `name` is
// the limit's in session_limits.h.
Error AboveLimit(absl::string_view subject, absl::string_view what, absl::string_view name,
                 int64_t limit);

// RESOURCE_EXHAUSTED / QUOTA_EXCEEDED with a retry delay, the same form.
Error QuotaExceeded(absl::string_view subject, absl::string_view what, absl::string_view name,
                    int64_t limit);

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_SESSION_SESSION_ERROR_H_
