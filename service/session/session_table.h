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
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/strong_int.h"
#include "planewise/v1/session.pb.h"
#include "service/auth/principal.h"
#include "service/schedule/work_admission.h"
#include "service/session/outgoing_frame.h"
#include "service/session/session.h"
#include "service/session/session_limits.h"
#include "service/session/session_states.h"

namespace planewise {

using StreamId = StrongInt<struct StreamIdTag>;

// One thread: every call is a task on the executor, and so is every callback.
class SessionTable {
 public:
  // `random` gives unpredictable bits: ids and tokens are made of them.
  SessionTable(SessionResources resources, SessionLimits limits,
               std::function<uint64_t()> random);
  ~SessionTable();

  // Streams. A stream's first frame is `open`.

  // `writable` is called whenever NextFrame may have something to give after it
  // gave nothing; it must not call back into the table (post instead).
  StreamId AddStream(Principal principal, std::function<void()> writable);

  // A frame that came in; `data` holds the bytes of a chunk in order, which stay
  // while `owner` is shared. It is given up, on any thread, when they are needed
  // no more; without one they are lent for the call. Does nothing for a stream
  // that has ended.
  void OnFrame(StreamId stream, const v1::ClientFrame& frame,
               absl::Span<const absl::Span<const std::byte>> data,
               std::shared_ptr<const void> owner);

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
               UnaryDone done);
  absl::StatusOr<v1::HeartbeatResponse> Heartbeat(const Principal& principal,
                                                  const v1::HeartbeatRequest& request);
  absl::Status Close(const Principal& principal, const v1::CloseRequest& request);

  int session_count() const { return static_cast<int>(sessions_.size()); }

  // What a drain waits for: a session is busy.
  bool busy() const;

  // New sessions are refused with UNAVAILABLE / DRAINING from now on.
  void BeginDrain() { admission_.BeginDrain(); }
  // Ends every session with DRAINING: the daemon goes down.
  void Shutdown();

 private:
  struct Stream;

  absl::StatusOr<std::shared_ptr<Session>> Create(const Principal& principal,
                                                  const v1::OpenSession& request);
  absl::StatusOr<std::shared_ptr<Session>> Find(const Principal& principal, uint64_t id,
                                                absl::string_view token);
  absl::Status OpenOn(StreamId id, Stream& stream, const v1::OpenSession& open);
  // Gives the stream its last frame.
  void EndStream(Stream& stream, const absl::Status& why);
  void DetachStream(Stream& stream, SessionEvent event, const absl::Status& why);
  // Removes the session; its stream gets `why` as its last frame.
  void EndSession(SessionId id, SessionEvent event, const absl::Status& why);
  std::function<void()> WakerOf(StreamId id);

  const SessionResources resources_;
  const SessionLimits limits_;
  const std::function<uint64_t()> random_;
  WorkAdmission admission_;
  uint64_t next_stream_ = 1;
  absl::flat_hash_map<StreamId, std::unique_ptr<Stream>> streams_;
  struct Entry {
    std::shared_ptr<Session> session;
    WorkTicket ticket;
    StreamId stream;  // attached; 0: none
  };
  absl::flat_hash_map<SessionId, Entry> sessions_;
};

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_SESSION_SESSION_TABLE_H_
