#include "service/weights/version_store.h"

#include <memory>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/sim_clock.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::shared_ptr<const ModelVersion> Version(uint64_t number) {
  auto version = std::make_shared<ModelVersion>();
  version->model = "m";
  version->version = WeightVersion(number);
  return version;
}

LeaseRequest Request(uint64_t version = 0) {
  LeaseRequest request;
  request.model = "m";
  request.version = WeightVersion(version);
  request.holder = "session 7";
  return request;
}

std::vector<uint64_t> HeldNumbers(const VersionStore& store) {
  std::vector<uint64_t> numbers;
  for (const HeldVersion& held : store.Held()) numbers.push_back(held.version.value());
  return numbers;
}

TEST(VersionStoreTest, ALeaseKeepsItsVersionAndNothingElseDoes) {
  SimClock clock;
  std::weak_ptr<const ModelVersion> first_bytes;
  VersionStore store(clock, Version(1));
  first_bytes = store.newest();
  PW_ASSERT_OK_AND_ASSIGN(WeightLease lease, store.Lease(Request()));
  store.Publish(Version(2));
  EXPECT_EQ(lease.version()->version, WeightVersion(1)) << "invariant 5 of the catalog";
  EXPECT_FALSE(first_bytes.expired());
  PW_ASSERT_OK_AND_ASSIGN(WeightLease newest, store.Lease(Request()));
  EXPECT_EQ(newest.version()->version, WeightVersion(2));
  EXPECT_THAT(HeldNumbers(store), ElementsAre(1, 2));

  lease = WeightLease();
  EXPECT_TRUE(first_bytes.expired());
  EXPECT_THAT(HeldNumbers(store), ElementsAre(2));
}

TEST(VersionStoreTest, LeasesAVersionThatIsLiveByNumber) {
  SimClock clock;
  VersionStore store(clock, Version(1));
  PW_ASSERT_OK_AND_ASSIGN(WeightLease first, store.Lease(Request(1)));
  store.Publish(Version(5));
  PW_ASSERT_OK_AND_ASSIGN(WeightLease again, store.Lease(Request(1)));
  EXPECT_EQ(again.version()->version, WeightVersion(1));
  EXPECT_THAT(store.Lease(Request(3)),
              HasReason(Reason::kNotFound, HasSubstr("version 3 is not in memory; live: 1, 5")));
  first = WeightLease();
  again = WeightLease();
  EXPECT_THAT(store.Lease(Request(1)), HasReason(Reason::kNotFound, HasSubstr("live: 5")));
}

TEST(VersionStoreTest, MovedLeasesEndOnce) {
  SimClock clock;
  VersionStore store(clock, Version(1));
  PW_ASSERT_OK_AND_ASSIGN(WeightLease a, store.Lease(Request()));
  WeightLease b = std::move(a);
  EXPECT_EQ(store.lease_count(), 1);
  PW_ASSERT_OK_AND_ASSIGN(b, store.Lease(Request()));
  EXPECT_EQ(store.lease_count(), 1);
  b = WeightLease();
  EXPECT_EQ(store.lease_count(), 0);
}

TEST(VersionStoreTest, RevokingTellsEveryHolderOnce) {
  SimClock clock;
  VersionStore store(clock, Version(1));
  std::vector<std::string> told;
  WeightLease second;
  PW_ASSERT_OK_AND_ASSIGN(WeightLease newer, store.Lease(Request()));
  LeaseRequest request = Request();
  request.on_revoked = [&] {
    told.push_back("first");
    // The holder drops what hangs on the version, and other leases too.
    second = WeightLease();
    newer = WeightLease();
  };
  PW_ASSERT_OK_AND_ASSIGN(const WeightLease first, store.Lease(std::move(request)));
  second = first.ForOperand("l", false, [&] { told.push_back("second"); });
  store.Publish(Version(2));
  PW_ASSERT_OK_AND_ASSIGN(newer, store.Lease(Request()));
  EXPECT_EQ(store.lease_count(), 3);

  store.Revoke(WeightVersion(1));
  EXPECT_THAT(told, ElementsAre("first")) << "the second had ended by then";
  EXPECT_FALSE(first.valid());
  EXPECT_EQ(store.lease_count(), 0);
}

TEST(VersionStoreTest, EndedLeasesAreNotTold) {
  SimClock clock;
  VersionStore store(clock, Version(1));
  LeaseRequest request = Request();
  request.on_revoked = [] { FAIL() << "told after its end"; };
  PW_ASSERT_OK_AND_ASSIGN(WeightLease lease, store.Lease(std::move(request)));
  lease = WeightLease();
  store.Revoke(WeightVersion(1));
}

TEST(VersionStoreTest, CountsOperandsThatReadTheColumnPlaneByLayer) {
  SimClock clock;
  VersionStore store(clock, Version(1));
  PW_ASSERT_OK_AND_ASSIGN(const WeightLease step, store.Lease(Request()));
  const WeightLease row = step.ForOperand("a", false, nullptr);
  WeightLease column = step.ForOperand("a", true, nullptr);
  const WeightLease other = step.ForOperand("b", true, nullptr);
  store.Publish(Version(2));
  EXPECT_THAT(store.ColumnOperands(), ElementsAre(std::pair("a", 1), std::pair("b", 1)));
  column = WeightLease();
  EXPECT_THAT(store.ColumnOperands(), ElementsAre(std::pair("b", 1)));
}

TEST(VersionStoreTest, AgesCountFromTheLease) {
  SimClock clock;
  VersionStore store(clock, Version(1));
  PW_ASSERT_OK_AND_ASSIGN(const WeightLease lease, store.Lease(Request()));
  clock.Advance(absl::Minutes(3));
  EXPECT_EQ(store.Held().front().leases.front().age, absl::Minutes(3));
}

TEST(VersionStoreTest, ALeaseMayOutliveItsModel) {
  SimClock clock;
  auto store = std::make_unique<VersionStore>(clock, Version(1));
  PW_ASSERT_OK_AND_ASSIGN(WeightLease lease, store->Lease(Request()));
  store.reset();
  EXPECT_EQ(lease.version()->version, WeightVersion(1));
  const WeightLease another = lease.ForOperand("l", false, nullptr);
  lease = WeightLease();
  EXPECT_EQ(another.version()->version, WeightVersion(1));
}

}  // namespace
}  // namespace planewise
