#ifndef PLANEWISE_SERVICE_WEIGHTS_RETENTION_POLICY_H_
#define PLANEWISE_SERVICE_WEIGHTS_RETENTION_POLICY_H_
// How many versions of a model stay in memory: whether a new one may be
// published, and which leases must be taken back for it. Pure.
//
// Not here: leases themselves (version_store.h).

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/base/strong_int.h"

namespace planewise {

struct LeaseFacts {
  std::string holder;
  absl::Duration age;
};

// A version that somebody holds.
struct HeldVersion {
  WeightVersion version;
  std::vector<LeaseFacts> leases;  // at least one
};

struct RetentionSnapshot {
  std::vector<HeldVersion> held;  // the newest among them, if it is held
  int live_versions_max = 3;      // the one to be published counts
  absl::Duration lease_age_min;   // a younger lease is never taken back
};

struct RetentionDecision {
  bool may_publish = true;
  // Whose leases are taken back first.
  std::vector<WeightVersion> revoke;
  // Who is in the way, if it may not publish.
  std::vector<std::string> holders;
};

// Gives up the versions whose youngest lease is oldest, as few as are needed.
// Refuses if that would take a lease below the minimum age.
RetentionDecision DecidePublish(const RetentionSnapshot& snapshot);

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_WEIGHTS_RETENTION_POLICY_H_
