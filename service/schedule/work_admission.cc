#include "service/schedule/work_admission.h"

#include "absl/strings/str_cat.h"
#include "core/base/error.h"

namespace planewise {
namespace {

// Long enough that a full queue moves on, short enough that nobody gives up.
constexpr int64_t kRetryDelayMs = 1000;

}  // namespace

absl::StatusOr<WorkTicket> WorkAdmission::Admit(absl::string_view what) const {
  if (draining_) {
    return Error(Reason::kDraining,
                 absl::StrCat(what, ": the daemon is shutting down; send it again later"))
        .WithRetryDelayMs(kRetryDelayMs);
  }
  if (*running_ >= limit_) {
    return Error(Reason::kQuotaExceeded, absl::StrCat(what, ": ", *running_, " of ", limit_name_,
                                                      " = ", limit_, " are in use; send it again"))
        .With("limit", limit_name_)
        .With("limitValue", int64_t{limit_})
        .WithRetryDelayMs(kRetryDelayMs);
  }
  return WorkTicket(running_);
}

}  // namespace planewise
