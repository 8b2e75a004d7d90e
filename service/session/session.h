#ifndef PLANEWISE_SERVICE_SESSION_SESSION_H_
#define PLANEWISE_SERVICE_SESSION_SESSION_H_
// One client's context: puts its operations together, executes them in the
// order of their ids and each once, keeps results until acknowledged. Frames of
// a stream and unary calls feed the same sequence.
//
// Numbered rules are those of proto/README.md, "Operations".
//
// Not here: finding a session, its streams (session_table.h); what an operation
// does (operation_runner.h).

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/base/clock.h"
#include "core/base/executor.h"
#include "core/base/strong_int.h"
#include "core/tensor/memory_budget.h"
#include "planewise/v1/session.pb.h"
#include "service/auth/principal.h"
#include "service/schedule/background_runner.h"
#include "service/session/operation_assembly.h"
#include "service/session/operation_runner.h"
#include "service/session/outgoing_frame.h"
#include "service/session/result_queue.h"
#include "service/session/session_limits.h"
#include "service/session/session_states.h"

namespace planewise {

// What a unary call answers: a result and its bytes, in pieces.
struct UnaryResult {
  v1::OperationResult result;
  std::vector<absl::Span<const std::byte>> bytes;
  std::shared_ptr<const void> owner;  // of `bytes`
};
using UnaryDone = absl::AnyInvocable<void(absl::StatusOr<UnaryResult>) &&>;

// What a session works with; all outlive it.
struct SessionResources {
  Executor* executor = nullptr;
  const Clock* clock = nullptr;
  BackgroundRunner* runner = nullptr;
  LeaseSource* models = nullptr;
  LinearExecutor* compute = nullptr;
  std::shared_ptr<MemoryBudget> budget;
};

struct SessionIdentity {
  SessionId id;
  std::string token;  // secret: proof that a stream or call is the same client
  Principal principal;
  bool deterministic = true;
};

// One thread: every call is a task on the executor.
class Session : public std::enable_shared_from_this<Session> {
 public:
  // `limits` outlives it.
  Session(SessionIdentity identity, const SessionLimits& limits, SessionResources resources);

  // To be called once, by whoever shares it: from here on it may expire.
  // `on_expired` runs when no sign of life came for the time-out.
  void Start(std::function<void()> on_expired);

  const SessionIdentity& identity() const { return identity_; }
  SessionState state() const { return state_; }
  // An operation runs or its bytes are being copied, or a stream's client has not
  // acknowledged all results.
  bool busy() const {
    return running_.has_value() || copies_running_ > 0 ||
           (state_ == SessionState::kAttached && !results_.empty());
  }

  // Streams. `wake` is called when NextFrame may have something to give.
  void Attach(SessionEvent event, uint64_t result_limit, std::function<void()> wake);
  // The stream is gone for `event`. What was not executed is forgotten.
  void Detach(SessionEvent event);
  // A frame other than `open` and `close`; data and owner as in SessionTable's.
  // A failure ends the stream.
  absl::Status OnFrame(const v1::ClientFrame& frame,
                       absl::Span<const absl::Span<const std::byte>> data,
                       std::shared_ptr<const void> owner);
  // Control before bulk; nullopt: nothing now.
  std::optional<OutgoingFrame> NextFrame();

  // Unary calls.
  void OpenWithoutStream() { Apply(SessionEvent::kOpenCall); }
  v1::SessionOpened Opened() const;
  void OnHeartbeat();
  // `done` runs as a task on the executor.
  void Execute(const v1::ExecuteRequest& request, UnaryDone done);

  // Releases everything; callers that wait get `why`.
  void End(SessionEvent event, const absl::Status& why);

 private:
  void Apply(SessionEvent event);
  std::string Name() const;

  absl::Status OnOperation(const v1::Operation& operation);
  absl::Status AddChunk(uint64_t position, absl::Span<const absl::Span<const std::byte>> data,
                        std::shared_ptr<const void> owner);
  absl::Status Acknowledge(uint64_t through_operation, uint64_t result_limit);
  absl::Status ReceiveUnary(const v1::ExecuteRequest& request);

  void Pump();
  bool StartNext();
  void Run(PreparedOperation prepared);
  void OnExecuted(OperationOutcome outcome);
  void AddResult(v1::Operation operation, OperationOutcome outcome);

  void WatchGap();
  void FailGap();
  void WatchSilence(absl::Duration delay);

  void AnswerWaiters(uint64_t id);
  void FailWaitersFrom(uint64_t id, const absl::Status& why);
  void Answer(UnaryDone done, absl::StatusOr<UnaryResult> result);
  void Wake();

  const SessionIdentity identity_;
  const SessionLimits& limits_;
  const SessionResources resources_;
  std::function<void()> on_expired_;
  SessionState state_ = SessionState::kNone;
  absl::Time last_heard_;

  OperationAssembly assembly_;
  int copies_running_ = 0;  // on Lane::kTransport
  ResultQueue results_;
  std::shared_ptr<OperationRunner> runner_;
  std::optional<v1::Operation> running_;  // its inputs are taken, its result is to come
  bool pumping_ = false;
  uint64_t checked_front_ = 0;  // id of the front that may run once its inputs came
  bool gap_watched_ = false;

  // The attached stream.
  std::function<void()> wake_;
  bool opened_due_ = false;
  bool resumed_ = false;
  uint64_t input_limit_sent_ = 0;

  std::multimap<uint64_t, UnaryDone> waiters_;  // by operation
};

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_SESSION_SESSION_H_
