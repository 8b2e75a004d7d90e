#include "service/schedule/work_admission.h"

#include "core/base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

using ::testing::HasSubstr;

TEST(WorkAdmissionTest, RefusesBeyondTheLimitUntilATicketEnds) {
  WorkAdmission admission("jobs_max", 2);
  PW_ASSERT_OK_AND_ASSIGN(WorkTicket first, admission.Admit("create model \"a\""));
  PW_ASSERT_OK_AND_ASSIGN(WorkTicket second, admission.Admit("create model \"b\""));
  const auto third = admission.Admit("create model \"c\"");
  EXPECT_THAT(third, HasReason(Reason::kQuotaExceeded, HasSubstr("2 of jobs_max = 2")));
  EXPECT_THAT(third, HasReason(Reason::kQuotaExceeded, HasSubstr("create model \"c\"")));
  EXPECT_TRUE(DetailsOf(third.status())->retry_delay_ms.has_value());
  EXPECT_EQ(admission.running(), 2);

  first = WorkTicket();
  EXPECT_EQ(admission.running(), 1);
  PW_EXPECT_OK(admission.Admit("create model \"c\""));
  EXPECT_EQ(admission.running(), 1);
}

TEST(WorkAdmissionTest, DrainingRefusesAllButKeepsTickets) {
  WorkAdmission admission("jobs_max", 2);
  PW_ASSERT_OK_AND_ASSIGN(const WorkTicket ticket, admission.Admit("save model \"a\""));
  admission.BeginDrain();
  EXPECT_THAT(admission.Admit("save model \"b\""), HasReason(Reason::kDraining));
  EXPECT_EQ(admission.running(), 1);
}

TEST(WorkAdmissionTest, MovedTicketsCountOnce) {
  WorkAdmission admission("jobs_max", 8);
  PW_ASSERT_OK_AND_ASSIGN(WorkTicket a, admission.Admit("a"));
  WorkTicket b = std::move(a);
  EXPECT_EQ(admission.running(), 1);
  PW_ASSERT_OK_AND_ASSIGN(b, admission.Admit("b"));
  EXPECT_EQ(admission.running(), 1);
}

}  // namespace
}  // namespace planewise
