#include "service/session/session_error.h"

#include "absl/strings/str_cat.h"

namespace planewise {
namespace {

// A step of a trainer: by then something was consumed or acknowledged.
constexpr int64_t kRetryDelayMs = 1000;

Error OfLimit(Reason reason, absl::string_view subject, absl::string_view what,
              absl::string_view name, int64_t limit) {
  Error error(reason, absl::StrCat(subject, ": ", what, "; ", name, " = ", limit));
  error.With("limit", name).With("limitValue", limit);
  return error;
}

}  // namespace

Error ProtocolViolation(absl::string_view subject, absl::string_view what) {
  return Error(Reason::kProtocolViolation, absl::StrCat(subject, ": ", what));
}

Error AboveLimit(absl::string_view subject, absl::string_view what, absl::string_view name,
                 int64_t limit) {
  return OfLimit(Reason::kLimitExceeded, subject, what, name, limit);
}

Error QuotaExceeded(absl::string_view subject, absl::string_view what, absl::string_view name,
                    int64_t limit) {
  Error error = OfLimit(Reason::kQuotaExceeded, subject, what, name, limit);
  error.WithRetryDelayMs(kRetryDelayMs);
  return error;
}

}  // namespace planewise
