#include "service/rpc/call_gate.h"

#include <optional>

#include "core/base/error.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

struct Case {
  ServingPhase phase;
  CallKind kind;
  std::optional<Reason> refusal;
};

const Case kCases[] = {
    {ServingPhase::kStarting, CallKind::kInfo, std::nullopt},
    {ServingPhase::kStarting, CallKind::kExisting, Reason::kUnavailable},
    {ServingPhase::kStarting, CallKind::kNew, Reason::kUnavailable},
    {ServingPhase::kStarting, CallKind::kStream, Reason::kUnavailable},
    {ServingPhase::kServing, CallKind::kInfo, std::nullopt},
    {ServingPhase::kServing, CallKind::kExisting, std::nullopt},
    {ServingPhase::kServing, CallKind::kNew, std::nullopt},
    {ServingPhase::kServing, CallKind::kStream, std::nullopt},
    {ServingPhase::kDraining, CallKind::kInfo, std::nullopt},
    {ServingPhase::kDraining, CallKind::kExisting, std::nullopt},
    {ServingPhase::kDraining, CallKind::kNew, Reason::kDraining},
    {ServingPhase::kDraining, CallKind::kStream, Reason::kDraining},
};

TEST(CallGateTest, EveryPhaseAndKind) {
  CallGate gate(std::nullopt, 1000);
  for (const Case& c : kCases) {
    SCOPED_TRACE(testing::Message() << "phase " << static_cast<int>(c.phase) << ", kind "
                                    << static_cast<int>(c.kind));
    gate.Enter(c.phase);
    const absl::StatusOr<Principal> admitted = gate.Admit({"unix:", std::nullopt}, c.kind);
    if (c.refusal) {
      EXPECT_THAT(admitted, HasReason(*c.refusal));
      EXPECT_TRUE(DetailsOf(admitted.status())->retry_delay_ms.has_value());
    } else {
      EXPECT_THAT(admitted, IsOkAndHolds(Principal{"unix:1000"}));
    }
  }
}

TEST(CallGateTest, StrangersAreToldNothingElse) {
  CallGate gate(std::nullopt, 1000);
  gate.Enter(ServingPhase::kDraining);
  EXPECT_THAT(gate.Admit({"ipv4:127.0.0.1:1", std::nullopt}, CallKind::kNew),
              HasReason(Reason::kUnauthenticated));
}

}  // namespace
}  // namespace planewise
