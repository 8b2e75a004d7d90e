#ifndef PLANEWISE_PLANNER_MODE_SWITCH_H_
#define PLANEWISE_PLANNER_MODE_SWITCH_H_
// May a model go to another recipe or backward mode? A pure function of
// layouts, target, device and memory: one verdict per weight, with all reasons,
// what would make it legal, and what it costs.
//
// Not here: the state that is judged (switch_snapshot.h); carrying a switch out
// (service/weights/); the guard of a forward (core/layer/linear.h).

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/base/reason.h"
#include "core/recipe/recipe.h"
#include "core/tensor/plane_set.h"
#include "planner/switch_snapshot.h"

namespace planewise {

// In ascending severity; a model's verdict is the worst of its weights'.
enum class SwitchVerdict : uint8_t {
  kAllowed,              // what the target's GEMMs read is stored and fresh
  kAllowedByDerivation,  // what is missing can be made from what is stored
  kNeedsMaster,          // it can come only from masters or a checkpoint
  kRejected,             // not legal here
};

absl::string_view Name(SwitchVerdict verdict);  // ALLOWED, ALLOWED_BY_DERIVATION, ...

struct SwitchTarget {
  Recipe recipe;
  // Drop planes that the target does not read. Not part of the fingerprint.
  bool release_unused_planes = false;
};

struct Remedy {
  std::string action;
  int64_t bytes = 0;  // to read, upload or convert
  double seconds = 0;

  bool operator==(const Remedy&) const = default;
};

struct SwitchReason {
  Reason reason = Reason::kInternal;
  std::string rule;
  std::string observed;
  std::vector<Remedy> remedies;

  bool operator==(const SwitchReason&) const = default;
};

struct WeightVerdict {
  std::string weight;
  SwitchVerdict verdict = SwitchVerdict::kAllowed;
  std::vector<SwitchReason> reasons;  // why it may not run; empty if it may
  // The planes after the switch, were it carried out; meaningless if the target
  // recipe is not legal.
  PlaneDecision decision;
  // Made from stored planes, once, when the switch is carried out.
  int64_t derived_bytes = 0;
  double derivation_seconds = 0;
  // Stored after the switch less stored now.
  int64_t persistent_delta_bytes = 0;
  int64_t upload_bytes = 0;  // FP32 masters; 0 unless NEEDS_MASTER
};

struct SwitchValidation {
  SwitchVerdict verdict = SwitchVerdict::kAllowed;
  int64_t allowed = 0;
  int64_t derivation = 0;
  int64_t needs_master = 0;
  int64_t rejected = 0;
  std::vector<WeightVerdict> weights;  // in the snapshot's order
  // MEMORY_SHORTFALL, which is of the model and not of one weight. Makes the
  // verdict REJECTED.
  std::vector<SwitchReason> model_reasons;
  int64_t persistent_delta_bytes = 0;
  // Above what is stored now, while the switch runs: the derived planes. Those
  // they replace go when their version's last lease ends.
  int64_t transient_bytes = 0;
  int64_t upload_bytes = 0;
  double derivation_seconds = 0;
  // 16 hexadecimal digits: XXH3 of layouts, recipe, version, target and device.
  std::string fingerprint;

  bool runs() const { return verdict <= SwitchVerdict::kAllowedByDerivation; }
};

// Never fails: what cannot be is a verdict.
SwitchValidation ValidateModeSwitch(const SwitchSnapshot& snapshot, const SwitchTarget& target);

// OK if the switch may run; else the error that SwitchMode returns, with the
// code of its worst reason. Up to 20 weights are listed as violations; the
// metadata has "needsMasterCount", "rejectedCount", "uploadBytes" and, for a
// shortfall, "bytesShort".
absl::Status SwitchStatus(const SwitchSnapshot& snapshot, const SwitchTarget& target,
                          const SwitchValidation& validation);

}  // namespace planewise

#endif  // PLANEWISE_PLANNER_MODE_SWITCH_H_
