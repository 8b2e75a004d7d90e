#include "service/weights/retention_policy.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace planewise {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

constexpr absl::Duration kAgeMin = absl::Minutes(2);

// Version `number`, held by leases of these ages in minutes.
HeldVersion Held(uint64_t number, std::vector<int> minutes) {
  HeldVersion held{WeightVersion(number), {}};
  for (const int m : minutes) {
    held.leases.push_back({"v" + std::to_string(number) + "/" + std::to_string(m) + "m",
                           absl::Minutes(m)});
  }
  return held;
}

struct Case {
  std::string name;
  std::vector<HeldVersion> held;
  int live_versions_max;
  bool may_publish;
  std::vector<uint64_t> revoke;
};

TEST(RetentionPolicyTest, DecidesWhetherToPublish) {
  const Case kCases[] = {
      {"nothing is held", {}, 1, true, {}},
      {"there is room for one more", {Held(1, {0}), Held(2, {0})}, 3, true, {}},
      {"full, but one is old: give it up", {Held(1, {5}), Held(2, {1})}, 2, true, {1}},
      {"the oldest goes first", {Held(1, {3}), Held(2, {9}), Held(3, {5})}, 3, true, {2}},
      {"a version is as old as its youngest lease", {Held(1, {90, 3}), Held(2, {4})}, 2, true, {2}},
      {"two too many", {Held(1, {9}), Held(2, {8}), Held(3, {1})}, 2, true, {1, 2}},
      {"exactly the minimum age is old enough", {Held(1, {2})}, 1, true, {1}},
      {"full of young leases", {Held(1, {1}), Held(2, {0})}, 2, false, {}},
      {"one young lease keeps its version", {Held(1, {90, 1})}, 1, false, {}},
      {"giving up all that may go is not enough", {Held(1, {9}), Held(2, {1})}, 1, false, {}},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const RetentionDecision decision =
        DecidePublish({c.held, c.live_versions_max, kAgeMin});
    EXPECT_EQ(decision.may_publish, c.may_publish);
    std::vector<WeightVersion> revoke;
    for (const uint64_t number : c.revoke) revoke.push_back(WeightVersion(number));
    EXPECT_THAT(decision.revoke, ElementsAreArray(revoke));
    EXPECT_EQ(decision.holders.empty(), c.may_publish);
  }
}

TEST(RetentionPolicyTest, NamesWhoIsInTheWay) {
  const RetentionDecision decision =
      DecidePublish({{Held(1, {1, 5}), Held(2, {0})}, 2, kAgeMin});
  EXPECT_THAT(decision.holders, ElementsAre("v1/1m", "v1/5m", "v2/0m"));
}

}  // namespace
}  // namespace planewise
