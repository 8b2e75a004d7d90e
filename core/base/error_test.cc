#include "core/base/error.h"

#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"

namespace planewise {
namespace {

absl::StatusOr<int> Fails() {
  return Error(Reason::kMemoryShortfall, "model \"a\": short of 5 bytes")
      .With("bytesShort", 5)
      .WithViolation({Reason::kColumnwiseMissing, "w:1", "no column plane"})
      .WithRetryDelayMs(250);
}

TEST(ErrorTest, CarriesCodeMessageAndDetails) {
  const absl::Status status = Fails().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "model \"a\": short of 5 bytes");
  const std::optional<ErrorDetails> details = DetailsOf(status);
  ASSERT_TRUE(details.has_value());
  EXPECT_EQ(details->reason, Reason::kMemoryShortfall);
  ASSERT_NE(details->Find("bytesShort"), nullptr);
  EXPECT_EQ(*details->Find("bytesShort"), "5");
  EXPECT_EQ(details->Find("absent"), nullptr);
  ASSERT_EQ(details->violations.size(), 1u);
  EXPECT_EQ(details->violations[0].subject, "w:1");
  EXPECT_EQ(details->retry_delay_ms, 250);
}

TEST(ErrorTest, AnnotateKeepsCodeAndDetails) {
  const absl::Status status = Annotate(Fails().status(), "create model");
  EXPECT_EQ(status.message(), "create model: model \"a\": short of 5 bytes");
  EXPECT_EQ(ReasonOf(status), Reason::kMemoryShortfall);
}

TEST(ErrorTest, ForeignStatusHasNoDetails) {
  EXPECT_EQ(DetailsOf(absl::InternalError("x")), std::nullopt);
  EXPECT_EQ(DetailsOf(absl::OkStatus()), std::nullopt);
}

TEST(ReasonTest, NamesAreUniqueUpperSnakeAndFindable) {
  std::set<std::string> names;
  for (const ReasonFacts& facts : AllReasons()) {
    EXPECT_TRUE(names.insert(std::string(facts.name)).second) << facts.name;
    EXPECT_LE(facts.name.size(), 63u);  // google.rpc.ErrorInfo.reason
    EXPECT_EQ(facts.name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_"), std::string::npos);
    EXPECT_EQ(ReasonFromName(facts.name), facts.reason);
    EXPECT_EQ(&FactsOf(facts.reason), &facts);
  }
  EXPECT_EQ(ReasonFromName("NO_SUCH_REASON"), std::nullopt);
}

}  // namespace
}  // namespace planewise
