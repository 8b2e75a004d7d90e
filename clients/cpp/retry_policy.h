#ifndef PLANEWISE_CLIENTS_CPP_RETRY_POLICY_H_
#define PLANEWISE_CLIENTS_CPP_RETRY_POLICY_H_
// Whether and when to send a failed request again: the one such decision of the
// client library. What may be retried at all is a column of the table of
// reasons (core/base/reason.h).
//
// Not here: waiting, time, randomness; all are passed in or left to the caller.

#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace planewise {

struct RetryPolicy {
  absl::Duration delay_first = absl::Milliseconds(20);
  absl::Duration delay_max = absl::Seconds(5);
  // No retry that would begin later than this after the first attempt failed.
  absl::Duration give_up_after = absl::Seconds(30);
};

// How long to wait after `attempt` attempts (at least 1) failed, the last one with
// `status` and the first one `elapsed` ago; nullopt: give up, the status is the answer.
//
// Retried are reasons marked "same request" and, for lack of a reason, the code
// UNAVAILABLE. The delay doubles with each attempt up to delay_max; `random`,
// uniform in [0, 1), takes away up to half of it, so that clients which failed
// together do not come back together. It is never below the server's retry delay.
std::optional<absl::Duration> RetryDelay(const RetryPolicy& policy, const absl::Status& status,
                                         int attempt, absl::Duration elapsed, double random);

}  // namespace planewise

#endif  // PLANEWISE_CLIENTS_CPP_RETRY_POLICY_H_
