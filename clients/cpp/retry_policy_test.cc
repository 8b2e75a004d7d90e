#include "clients/cpp/retry_policy.h"

#include "core/base/error.h"
#include "core/base/reason.h"
#include "gtest/gtest.h"

namespace planewise {
namespace {

const RetryPolicy kPolicy = {.delay_first = absl::Milliseconds(10),
                             .delay_max = absl::Milliseconds(100),
                             .give_up_after = absl::Seconds(2)};

std::optional<absl::Duration> Delay(const absl::Status& status, int attempt,
                                    absl::Duration elapsed = absl::ZeroDuration(),
                                    double random = 0) {
  return RetryDelay(kPolicy, status, attempt, elapsed, random);
}

TEST(RetryPolicyTest, RetriesExactlyTheReasonsThatTheTableMarks) {
  for (const ReasonFacts& facts : AllReasons()) {
    SCOPED_TRACE(std::string(facts.name));
    EXPECT_EQ(Delay(Error(facts.reason, "failed"), 1).has_value(),
              facts.retry == Retry::kSameRequest);
  }
}

TEST(RetryPolicyTest, WithoutAReasonTheCodeUnavailableAloneIsRetried) {
  EXPECT_TRUE(Delay(absl::UnavailableError("connection refused"), 1).has_value());
  EXPECT_FALSE(Delay(absl::UnknownError("what"), 1).has_value());
  EXPECT_FALSE(Delay(absl::DeadlineExceededError("late"), 1).has_value());
}

TEST(RetryPolicyTest, DoublesUpToTheLargestDelayHoweverManyAttempts) {
  const absl::Status status = absl::UnavailableError("gone");
  EXPECT_EQ(Delay(status, 1), absl::Milliseconds(10));
  EXPECT_EQ(Delay(status, 2), absl::Milliseconds(20));
  EXPECT_EQ(Delay(status, 4), absl::Milliseconds(80));
  EXPECT_EQ(Delay(status, 5), absl::Milliseconds(100));
  EXPECT_EQ(Delay(status, 2'000'000'000), absl::Milliseconds(100));
}

TEST(RetryPolicyTest, RandomnessTakesAwayUpToHalf) {
  const absl::Status status = absl::UnavailableError("gone");
  EXPECT_EQ(Delay(status, 3, absl::ZeroDuration(), 0.5), absl::Milliseconds(30));
  EXPECT_GT(Delay(status, 3, absl::ZeroDuration(), 0.999), absl::Milliseconds(20));
}

TEST(RetryPolicyTest, NeverComesBackBeforeTheServerAskedFor) {
  const absl::Status status = Error(Reason::kDraining, "draining").WithRetryDelayMs(700);
  EXPECT_EQ(Delay(status, 1, absl::ZeroDuration(), 0.9), absl::Milliseconds(700));
}

TEST(RetryPolicyTest, GivesUpWhenTheNextAttemptWouldBeginTooLate) {
  const absl::Status status = absl::UnavailableError("gone");
  EXPECT_TRUE(Delay(status, 1, absl::Milliseconds(1990)).has_value());
  EXPECT_FALSE(Delay(status, 1, absl::Milliseconds(1991)).has_value());
  EXPECT_FALSE(Delay(Error(Reason::kDraining, "draining").WithRetryDelayMs(2001), 1).has_value());
}

}  // namespace
}  // namespace planewise
