#include "clients/cpp/retry_policy.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/reason.h"

namespace planewise {
namespace {

bool MayRetry(const absl::Status& status) {
  const std::optional<Reason> reason = ReasonOf(status);
  if (!reason) return status.code() == absl::StatusCode::kUnavailable;
  return FactsOf(*reason).retry == Retry::kSameRequest;
}

// Doubles by hand: absl::Duration saturates, a shift would overflow.
absl::Duration ExponentialDelay(const RetryPolicy& policy, int attempt) {
  absl::Duration delay = policy.delay_first;
  for (int i = 1; i < attempt && delay < policy.delay_max; ++i) delay *= 2;
  return std::min(delay, policy.delay_max);
}

}  // namespace

std::optional<absl::Duration> RetryDelay(const RetryPolicy& policy, const absl::Status& status,
                                         int attempt, absl::Duration elapsed, double random) {
  if (!MayRetry(status)) return std::nullopt;
  absl::Duration delay = ExponentialDelay(policy, attempt) * (1.0 - random / 2);
  const std::optional<ErrorDetails> details = DetailsOf(status);
  if (details && details->retry_delay_ms) {
    delay = std::max(delay, absl::Milliseconds(*details->retry_delay_ms));
  }
  if (elapsed + delay > policy.give_up_after) return std::nullopt;
  return delay;
}

}  // namespace planewise
