#include "service/rpc/call_gate.h"

#include <utility>

#include "core/base/error.h"
#include "core/base/status_macros.h"

namespace planewise {

CallGate::CallGate(std::optional<AuthToken> token, unsigned user_id)
    : token_(std::move(token)), user_id_(user_id) {}

absl::StatusOr<Principal> CallGate::Admit(const CallerFacts& caller, CallKind kind) const {
  PW_ASSIGN_OR_RETURN(Principal principal,
                      IdentifyCaller(caller, token_ ? &*token_ : nullptr, user_id_));
  const ServingPhase phase = phase_;
  if (phase == ServingPhase::kStarting && kind != CallKind::kInfo) {
    return Error(Reason::kUnavailable,
                 "the daemon is starting: it loads the models of its store; ask again")
        .WithRetryDelayMs(kStartingRetryDelayMs);
  }
  const bool begins = kind == CallKind::kNew || kind == CallKind::kStream;
  if (phase == ServingPhase::kDraining && begins) {
    return Error(Reason::kDraining,
                 "the daemon is shutting down and begins no new work; ask its successor")
        .WithRetryDelayMs(kDrainingRetryDelayMs);
  }
  return principal;
}

}  // namespace planewise
