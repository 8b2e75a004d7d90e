#ifndef PLANEWISE_SERVICE_SESSION_SESSION_STATES_H_
#define PLANEWISE_SERVICE_SESSION_SESSION_STATES_H_
// The state table of a session: every transition there is. proto/README.md
// shows the same table to users, and a test holds the two equal.
//
// Not here: what happens on a transition (session.h, session_table.h).

#include <cstdint>
#include <optional>

namespace planewise {

enum class SessionState : uint8_t {
  kNone,      // no session yet
  kAttached,  // a stream is open
  kDetached,  // none is
  kClosed,
};

enum class SessionEvent : uint8_t {
  kOpen,             // `open` without session_id
  kOpenCall,         // the same as a unary call
  kResume,           // `open` with session_id and resume_token
  kResumeElsewhere,  // the same while another stream is attached
  kFrame,            // operation, chunk, acknowledge, heartbeat
  kCall,             // Execute, Heartbeat
  kOpenAgain,        // `open` on a stream that is open
  kStreamEnds,       // it breaks, or ends with an error
  kClose,            // as a frame or call
  kTimeout,
  kShutdown,
  kAnyCall,
};

struct SessionTransition {
  SessionState from;
  SessionEvent event;
  SessionState to;
};

// Table of proto/README.md, "Streams", row by row; a row that names two states
// is two here.
inline constexpr SessionTransition kSessionTransitions[] = {
    {SessionState::kNone, SessionEvent::kOpen, SessionState::kAttached},
    {SessionState::kNone, SessionEvent::kOpenCall, SessionState::kDetached},
    {SessionState::kDetached, SessionEvent::kResume, SessionState::kAttached},
    {SessionState::kAttached, SessionEvent::kResumeElsewhere, SessionState::kAttached},
    {SessionState::kAttached, SessionEvent::kFrame, SessionState::kAttached},
    {SessionState::kAttached, SessionEvent::kCall, SessionState::kAttached},
    {SessionState::kDetached, SessionEvent::kCall, SessionState::kDetached},
    {SessionState::kAttached, SessionEvent::kOpenAgain, SessionState::kDetached},
    {SessionState::kAttached, SessionEvent::kStreamEnds, SessionState::kDetached},
    {SessionState::kAttached, SessionEvent::kClose, SessionState::kClosed},
    {SessionState::kDetached, SessionEvent::kClose, SessionState::kClosed},
    {SessionState::kAttached, SessionEvent::kTimeout, SessionState::kClosed},
    {SessionState::kDetached, SessionEvent::kTimeout, SessionState::kClosed},
    {SessionState::kAttached, SessionEvent::kShutdown, SessionState::kClosed},
    {SessionState::kDetached, SessionEvent::kShutdown, SessionState::kClosed},
    {SessionState::kClosed, SessionEvent::kAnyCall, SessionState::kClosed},
};

// The state after `event`; nullopt if the table does not allow it.
constexpr std::optional<SessionState> NextState(SessionState state, SessionEvent event) {
  for (const SessionTransition& transition : kSessionTransitions) {
    if (transition.from == state && transition.event == event) return transition.to;
  }
  return std::nullopt;
}

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_SESSION_SESSION_STATES_H_
