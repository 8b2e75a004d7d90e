#ifndef PLANEWISE_TESTS_TESTING_STATUS_MATCHERS_H_
#define PLANEWISE_TESTS_TESTING_STATUS_MATCHERS_H_
// GoogleTest matchers for absl::Status and absl::StatusOr.
//
//   PW_ASSERT_OK(store.Sync());
//   PW_ASSERT_OK_AND_ASSIGN(const Plane plane, Load(name));
//   EXPECT_THAT(Parse("4"), IsOkAndHolds(4));
//   EXPECT_THAT(Load("nope"), HasReason(Reason::kNotFound, HasSubstr("\"nope\"")));

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace planewise {

inline const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

MATCHER(IsOk, negation ? "is not OK" : "is OK") {
  *result_listener << "which is " << StatusOf(arg).ToString();
  return StatusOf(arg).ok();
}

// The value of an OK StatusOr matches `value`, a value or a matcher.
MATCHER_P(IsOkAndHolds, value, "is OK and holds a matching value") {
  if (!arg.ok()) {
    *result_listener << "which is " << StatusOf(arg).ToString();
    return false;
  }
  return testing::ExplainMatchResult(value, *arg, result_listener);
}

// A failure made by Error with `reason`, whose message matches `message`.
MATCHER_P2(HasReason, reason, message,
           "has reason " + std::string(FactsOf(reason).name) + " and a message that " +
               testing::DescribeMatcher<std::string>(message)) {
  *result_listener << "which is " << StatusOf(arg).ToString();
  return !StatusOf(arg).ok() && ReasonOf(StatusOf(arg)) == reason &&
         testing::ExplainMatchResult(message, std::string(StatusOf(arg).message()),
                                     result_listener);
}
inline auto HasReason(Reason reason) { return HasReason(reason, testing::_); }

}  // namespace planewise

#define PW_ASSERT_OK(expression) ASSERT_THAT(expression, ::planewise::IsOk())
#define PW_EXPECT_OK(expression) EXPECT_THAT(expression, ::planewise::IsOk())

// Ends the test if `expression`, an absl::StatusOr, is not OK; else assigns.
#define PW_ASSERT_OK_AND_ASSIGN(target, expression) \
  PW_ASSERT_OK_AND_ASSIGN_(PW_MATCHERS_CONCAT_(pw_result_, __LINE__), target, expression)
#define PW_ASSERT_OK_AND_ASSIGN_(result, target, expression) \
  auto result = (expression);                                \
  PW_ASSERT_OK(result);                                      \
  target = *std::move(result)
#define PW_MATCHERS_CONCAT_(a, b) PW_MATCHERS_CONCAT_INNER_(a, b)
#define PW_MATCHERS_CONCAT_INNER_(a, b) a##b

#endif  // PLANEWISE_TESTS_TESTING_STATUS_MATCHERS_H_
