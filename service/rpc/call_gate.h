#ifndef PLANEWISE_SERVICE_RPC_CALL_GATE_H_
#define PLANEWISE_SERVICE_RPC_CALL_GATE_H_
// Lets a call in or says why not: who calls, and whether the daemon takes such
// work now.
//
// Not here: who a caller is (service/auth/access_rules.h), limits of the work
// itself (catalog, sessions).

#include <atomic>
#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "service/auth/access_rules.h"
#include "service/auth/auth_token.h"
#include "service/auth/principal.h"

namespace planewise {

enum class ServingPhase : uint8_t {
  kStarting,  // models of the store are being loaded
  kServing,
  kDraining,  // what runs may end; nothing new begins
};

// What a call asks for, as far as the phase matters.
enum class CallKind : uint8_t {
  kInfo,      // answered always: versions, limits, settings
  kExisting,  // refers to what exists: models, open sessions
  kNew,       // begins work: a model, a session, a transfer
  kStream,    // begins as kNew, and then lasts as long as a session
};

// When to ask again. Models load in seconds; a daemon that drains is replaced.
inline constexpr int64_t kStartingRetryDelayMs = 500;
inline constexpr int64_t kDrainingRetryDelayMs = 2000;

// Thread-safe: asked on gRPC's threads.
class CallGate {
 public:
  // No token: the daemon does not listen on TCP.
  CallGate(std::optional<AuthToken> token, unsigned user_id);

  // UNAUTHENTICATED; UNAVAILABLE with a retry delay while starting or draining.
  absl::StatusOr<Principal> Admit(const CallerFacts& caller, CallKind kind) const;

  void Enter(ServingPhase phase) { phase_ = phase; }
  ServingPhase phase() const { return phase_; }

 private:
  const std::optional<AuthToken> token_;
  const unsigned user_id_;
  std::atomic<ServingPhase> phase_ = ServingPhase::kStarting;
};

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_RPC_CALL_GATE_H_
