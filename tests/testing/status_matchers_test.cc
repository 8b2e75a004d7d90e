#include "tests/testing/status_matchers.h"

#include <memory>

namespace planewise {
namespace {

using testing::HasSubstr;
using testing::Not;

absl::StatusOr<std::unique_ptr<int>> Four() { return std::make_unique<int>(4); }

absl::StatusOr<int> Missing() {
  return Error(Reason::kNotFound, "model \"a\": not hosted; load it first");
}

TEST(StatusMatchersTest, TellOkFromFailure) {
  EXPECT_THAT(absl::OkStatus(), IsOk());
  EXPECT_THAT(Four(), IsOk());
  EXPECT_THAT(Missing(), Not(IsOk()));
  EXPECT_THAT(absl::StatusOr<int>(4), IsOkAndHolds(4));
  EXPECT_THAT(absl::StatusOr<int>(4), Not(IsOkAndHolds(5)));
  EXPECT_THAT(Missing(), Not(IsOkAndHolds(0)));
}

TEST(StatusMatchersTest, AssignsMoveOnlyValues) {
  PW_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<int> four, Four());
  EXPECT_EQ(*four, 4);
}

TEST(StatusMatchersTest, HasReasonComparesReasonAndMessage) {
  EXPECT_THAT(Missing(), HasReason(Reason::kNotFound));
  EXPECT_THAT(Missing().status(), HasReason(Reason::kNotFound, HasSubstr("load it first")));
  EXPECT_THAT(Missing(), Not(HasReason(Reason::kNotFound, HasSubstr("other"))));
  EXPECT_THAT(Missing(), Not(HasReason(Reason::kInternal)));
  EXPECT_THAT(absl::OkStatus(), Not(HasReason(Reason::kNotFound)));
  EXPECT_THAT(absl::NotFoundError("foreign"), Not(HasReason(Reason::kNotFound)));
}

}  // namespace
}  // namespace planewise
