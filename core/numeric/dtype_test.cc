#include "core/numeric/dtype.h"

#include <limits>
#include <set>
#include <string>

#include "core/base/reason.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

using testing::HasSubstr;

TEST(DTypeTest, EveryTypeIsListedOnceUnderItsOwnNumber) {
  std::set<std::string> names;
  for (const DTypeFacts& facts : AllDTypes()) {
    EXPECT_EQ(&FactsOf(facts.dtype), &facts) << facts.name;
    EXPECT_TRUE(names.insert(std::string(facts.name)).second) << facts.name;
    EXPECT_EQ(ParseDType(facts.name), facts.dtype);
    EXPECT_EQ(Name(facts.dtype), facts.name);
  }
  EXPECT_EQ(AllDTypes().size(), static_cast<size_t>(DType::kU64) + 1);
}

TEST(DTypeTest, NamesAreThoseOfSafetensorsAndExact) {
  EXPECT_EQ(Name(DType::kF8E4M3), "F8_E4M3");
  EXPECT_EQ(Name(DType::kF8E8M0), "F8_E8M0");
  EXPECT_EQ(ParseDType("BF16"), DType::kBF16);
  for (const char* name : {"", "bf16", "BF16 ", "F8", "F128"}) {
    EXPECT_EQ(ParseDType(name), std::nullopt) << name;
  }
}

TEST(DTypeTest, CountsBytes) {
  EXPECT_THAT(SizeBytes(DType::kF32, 3), IsOkAndHolds(12));
  EXPECT_THAT(SizeBytes(DType::kBF16, 0), IsOkAndHolds(0));
  EXPECT_THAT(SizeBytes(DType::kF4E2M1, 6), IsOkAndHolds(3));
  EXPECT_THAT(SizeBytes(DType::kF4E2M1, 7),
              HasReason(Reason::kInvalidRequest, HasSubstr("7 elements of F4")));
  EXPECT_THAT(SizeBytes(DType::kF32, std::numeric_limits<int64_t>::max() / 8),
              HasReason(Reason::kLimitExceeded));
}

TEST(DTypeTest, HighPrecisionIsF32Bf16F16) {
  for (const DTypeFacts& facts : AllDTypes()) {
    const bool expected = facts.name == "F32" || facts.name == "BF16" || facts.name == "F16";
    EXPECT_EQ(IsHighPrecision(facts.dtype), expected) << facts.name;
  }
}

}  // namespace
}  // namespace planewise
