#include "service/weights/retention_policy.h"

#include <algorithm>

namespace planewise {
namespace {

absl::Duration YoungestLease(const HeldVersion& held) {
  return std::min_element(
             held.leases.begin(), held.leases.end(),
             [](const LeaseFacts& a, const LeaseFacts& b) { return a.age < b.age; })
      ->age;
}

}  // namespace

RetentionDecision DecidePublish(const RetentionSnapshot& snapshot) {
  RetentionDecision decision;
  const int surplus =
      static_cast<int>(snapshot.held.size()) + 1 - snapshot.live_versions_max;
  if (surplus <= 0) return decision;

  std::vector<const HeldVersion*> revocable;
  for (const HeldVersion& held : snapshot.held) {
    if (YoungestLease(held) >= snapshot.lease_age_min) revocable.push_back(&held);
  }
  if (static_cast<int>(revocable.size()) < surplus) {
    decision.may_publish = false;
    for (const HeldVersion& held : snapshot.held) {
      for (const LeaseFacts& lease : held.leases) decision.holders.push_back(lease.holder);
    }
    return decision;
  }
  std::stable_sort(revocable.begin(), revocable.end(),
                   [](const HeldVersion* a, const HeldVersion* b) {
                     return YoungestLease(*a) > YoungestLease(*b);
                   });
  for (int i = 0; i < surplus; ++i) decision.revoke.push_back(revocable[i]->version);
  return decision;
}

}  // namespace planewise
