#ifndef PLANEWISE_SERVICE_SESSION_SESSION_TABLE_H_
#define PLANEWISE_SERVICE_SESSION_SESSION_TABLE_H_
// All sessions of the daemon, and the streams attached to them: finds, opens,
// resumes, expires. The rules are those of proto/README.md.
//
// A transport calls OnFrame for what came in and NextFrame for what may go out,
// and writes one frame at a time: so a slow reader holds back its own session
// only, and in bounded memory.
//
// Not here: one session (session.h), gRPC (service/rpc/).

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/clock.h"
#include "core/base/executor.h"
#include "core/base/strong_int.h"
#include "core/tensor/memory_budget.h"
#include "planewise/v1/session.pb.h"
#include "service/auth/principal.h"
#include "service/compute/linear_executor.h"
#include "service/session/outgoing_frame.h"
#include "service/session/session_limits.h"
#include "service/weights/weight_lease.h"

namespace planewise {

using StreamId = StrongInt<struct StreamIdTag>;

// All outlive the table.
struct SessionResources {
  Executor* executor = nullptr;
  const Clock* clock = nullptr;
  LeaseSource* models = nullptr;
  LinearExecutor* compute = nullptr;
  std::shared_ptr<MemoryBudget> budget;
  // Unpredictable bits: ids and tokens are made of them.
  std::function<uint64_t()> random;
};

// What a unary call answers: a result and its bytes, in pieces.
struct UnaryResult {
  v1::OperationResult result;
  std::vector<absl::Span<const std::byte>> bytes;
  std::shared_ptr<const void> owner;  // of `bytes`
};

class Session;

// One thread: every call is a task on the executor, and so is every callback.
class SessionTable {
 public:
  SessionTable(SessionResources resources, SessionLimits limits);
  ~SessionTable();

  // Streams. A stream's first frame is `open`.

  // `writable` is called whenever NextFrame may have something to give after it
  // gave nothing; it must not call back into the table (post instead).
  StreamId AddStream(Principal principal, std::function<void()> writable);

  // A frame that came in; `data` holds the bytes of a chunk in order, lent for
  // the call. Does nothing for a stream that has ended.
  void OnFrame(StreamId stream, const v1::ClientFrame& frame,
               absl::Span<const absl::Span<const std::byte>> data);

  // The next frame to write, control before bulk. nullopt: nothing now. After a
  // frame with `last` the stream has ended and gives nothing more.
  std::optional<OutgoingFrame> NextFrame(StreamId stream);

  // The transport is done with the stream, whoever ended it. Its session stays.
  void RemoveStream(StreamId stream);

  // Unary calls. UNAVAILABLE / DRAINING, RESOURCE_EXHAUSTED / QUOTA_EXCEEDED,
  // ABORTED / SESSION_EXPIRED, PERMISSION_DENIED for a wrong token.

  // A new session without a stream.
  absl::StatusOr<v1::SessionOpened> Open(const Principal& principal,
                                         const v1::OpenSession& request);
  // `done` runs on the executor, never inside this call. A failed operation is
  // a result, not a failed call.
  void Execute(const Principal& principal, const v1::ExecuteRequest& request,
               absl::AnyInvocable<void(absl::StatusOr<UnaryResult>) &&> done);
  absl::StatusOr<v1::HeartbeatResponse> Heartbeat(const Principal& principal,
                                                  const v1::HeartbeatRequest& request);
  absl::Status Close(const Principal& principal, const v1::CloseRequest& request);

  int session_count() const { return static_cast<int>(sessions_.size()); }

  // New sessions are refused with UNAVAILABLE / DRAINING from now on.
  void BeginDrain();
  // Ends every session; its stream gets `ended` with `why`.
  void EndAll(const absl::Status& why);

 private:
  struct Stream;

  const SessionResources resources_;
  const SessionLimits limits_;
  bool draining_ = false;
  uint64_t next_stream_ = 1;
  absl::flat_hash_map<StreamId, std::unique_ptr<Stream>> streams_;
  absl::flat_hash_map<SessionId, std::shared_ptr<Session>> sessions_;
};

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_SESSION_SESSION_TABLE_H_
