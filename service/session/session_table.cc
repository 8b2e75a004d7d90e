#include "service/session/session_table.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "proto/status/status_codec.h"
#include "proto/version/api_version.h"
#include "service/session/session_error.h"

namespace planewise {
namespace {

absl::Status Expired(uint64_t id) {
  return Error(Reason::kSessionExpired,
               absl::StrCat("session ", id, ": it is not known here: it was closed, nothing was "
                            "heard of it for its time-out, or the daemon restarted; open another "
                            "one and restart the step"))
      .With("sessionId", absl::StrCat(id));
}

// Compares without telling by its duration where the first difference is.
bool SameSecret(absl::string_view a, absl::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  }
  return difference == 0;
}

}  // namespace

struct SessionTable::Stream {
  Principal principal;
  std::function<void()> writable;
  SessionId session;  // 0: not opened yet, or ended
  // The last frame, once there is one; `finished` once it was given out.
  std::optional<absl::Status> end;
  bool finished = false;
  bool starved = true;  // NextFrame gave nothing since `writable` was called
};

SessionTable::SessionTable(SessionResources resources, SessionLimits limits,
                           std::function<uint64_t()> random)
    : resources_(std::move(resources)),
      limits_(limits),
      random_(std::move(random)),
      admission_("sessions_max", limits.sessions_max) {}

SessionTable::~SessionTable() = default;

StreamId SessionTable::AddStream(Principal principal, std::function<void()> writable) {
  const StreamId id(next_stream_++);
  auto stream = std::make_unique<Stream>();
  stream->principal = std::move(principal);
  stream->writable = std::move(writable);
  streams_.emplace(id, std::move(stream));
  return id;
}

void SessionTable::OnFrame(StreamId id, const v1::ClientFrame& frame,
                           absl::Span<const absl::Span<const std::byte>> data,
                           std::shared_ptr<const void> owner) {
  const auto found = streams_.find(id);
  if (found == streams_.end() || found->second->end.has_value()) return;
  Stream& stream = *found->second;
  if (stream.session == SessionId()) {
    const absl::Status status =
        frame.has_open() ? OpenOn(id, stream, frame.open())
                         : ProtocolViolation("stream", "the first frame is not `open`");
    if (!status.ok()) EndStream(stream, status);
    return;
  }
  if (frame.has_open()) {
    return DetachStream(stream, SessionEvent::kOpenAgain,
                        ProtocolViolation(absl::StrCat("session ", stream.session.value()),
                                          "`open` came again on its stream"));
  }
  if (frame.has_close()) {
    return EndSession(stream.session, SessionEvent::kClose, absl::OkStatus());
  }
  const absl::Status status =
      sessions_.at(stream.session).session->OnFrame(frame, data, std::move(owner));
  if (!status.ok()) DetachStream(stream, SessionEvent::kStreamEnds, status);
}

// The first frame of a stream.
absl::Status SessionTable::OpenOn(StreamId id, Stream& stream, const v1::OpenSession& open) {
  SessionEvent event = SessionEvent::kOpen;
  std::shared_ptr<Session> session;
  if (open.session_id() == 0) {
    PW_ASSIGN_OR_RETURN(session, Create(stream.principal, open));
  } else {
    PW_RETURN_IF_ERROR(CheckApiVersions(open.client_api_version(), kApiVersion));
    PW_ASSIGN_OR_RETURN(session,
                        Find(stream.principal, open.session_id(), open.resume_token()));
    event = SessionEvent::kResume;
    Entry& entry = sessions_.at(session->identity().id);
    if (entry.stream != StreamId()) {
      // The client has given the old stream up; what came on it is forgotten.
      event = SessionEvent::kResumeElsewhere;
      DetachStream(*streams_.at(entry.stream), event,
                   Error(Reason::kStreamSuperseded,
                         absl::StrCat("session ", open.session_id(),
                                      ": another stream resumed it; use that one")));
    }
  }
  stream.session = session->identity().id;
  sessions_.at(stream.session).stream = id;
  session->Attach(event, open.result_limit(), WakerOf(id));
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<Session>> SessionTable::Create(const Principal& principal,
                                                              const v1::OpenSession& request) {
  PW_RETURN_IF_ERROR(CheckApiVersions(request.client_api_version(), kApiVersion));
  PW_ASSIGN_OR_RETURN(WorkTicket ticket, admission_.Admit("open session"));
  SessionIdentity identity;
  do {
    identity.id = SessionId(random_());
  } while (identity.id == SessionId() || sessions_.contains(identity.id));
  identity.token = absl::StrFormat("%016x%016x", random_(), random_());
  identity.principal = principal;
  identity.deterministic = !request.has_deterministic() || request.deterministic();
  const SessionId id = identity.id;
  auto session = std::make_shared<Session>(std::move(identity), limits_, resources_);
  session->Start([this, id] { EndSession(id, SessionEvent::kTimeout, Expired(id.value())); });
  Entry& entry = sessions_[id];
  entry.session = session;
  entry.ticket = std::move(ticket);
  return session;
}

absl::StatusOr<std::shared_ptr<Session>> SessionTable::Find(const Principal& principal,
                                                            uint64_t id,
                                                            absl::string_view token) {
  const auto entry = sessions_.find(SessionId(id));
  if (entry == sessions_.end()) return Expired(id);
  const SessionIdentity& identity = entry->second.session->identity();
  if (!SameSecret(token, identity.token) || principal != identity.principal) {
    return Error(Reason::kPermissionDenied,
                 absl::StrCat("session ", id, ": the resume_token or caller is not the one that "
                              "opened it; open a session of your own"));
  }
  return entry->second.session;
}

std::optional<OutgoingFrame> SessionTable::NextFrame(StreamId id) {
  const auto found = streams_.find(id);
  if (found == streams_.end() || found->second->finished) return std::nullopt;
  Stream& stream = *found->second;
  std::optional<OutgoingFrame> frame;
  if (stream.end.has_value()) {
    stream.finished = true;
    frame.emplace();
    *frame->header.mutable_ended()->mutable_status() = StatusToProto(*stream.end);
    frame->last = true;
  } else if (stream.session != SessionId()) {
    frame = sessions_.at(stream.session).session->NextFrame();
  }
  stream.starved = !frame.has_value();
  return frame;
}

std::function<void()> SessionTable::WakerOf(StreamId id) {
  return [this, id] {
    Stream& stream = *streams_.at(id);
    if (std::exchange(stream.starved, false)) stream.writable();
  };
}

void SessionTable::EndStream(Stream& stream, const absl::Status& why) {
  stream.session = SessionId();
  stream.end = why;
  if (std::exchange(stream.starved, false)) stream.writable();
}

// The stream ends, its session stays.
void SessionTable::DetachStream(Stream& stream, SessionEvent event, const absl::Status& why) {
  Entry& entry = sessions_.at(stream.session);
  entry.stream = StreamId();
  entry.session->Detach(event);
  EndStream(stream, why);
}

void SessionTable::RemoveStream(StreamId id) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return;
  if (found->second->session != SessionId()) {
    Entry& entry = sessions_.at(found->second->session);
    entry.stream = StreamId();
    entry.session->Detach(SessionEvent::kStreamEnds);
  }
  streams_.erase(id);
}

void SessionTable::EndSession(SessionId id, SessionEvent event, const absl::Status& why) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return;
  Entry entry = std::move(found->second);
  sessions_.erase(found);
  const absl::Status for_calls = why.ok() ? Expired(id.value()) : why;
  entry.session->End(event, for_calls);
  if (entry.stream != StreamId()) EndStream(*streams_.at(entry.stream), why);
}

absl::StatusOr<v1::SessionOpened> SessionTable::Open(const Principal& principal,
                                                     const v1::OpenSession& request) {
  if (request.session_id() != 0) {
    return Error(Reason::kInvalidRequest,
                 "field session_id: a session is resumed on a stream; calls name it themselves");
  }
  PW_ASSIGN_OR_RETURN(const std::shared_ptr<Session> session, Create(principal, request));
  session->OpenWithoutStream();
  return session->Opened();
}

void SessionTable::Execute(const Principal& principal, const v1::ExecuteRequest& request,
                           UnaryDone done) {
  const absl::StatusOr<std::shared_ptr<Session>> session =
      Find(principal, request.session_id(), request.resume_token());
  if (session.ok()) return (*session)->Execute(request, std::move(done));
  resources_.executor->Post([done = std::move(done), status = session.status()]() mutable {
    std::move(done)(std::move(status));
  });
}

absl::StatusOr<v1::HeartbeatResponse> SessionTable::Heartbeat(
    const Principal& principal, const v1::HeartbeatRequest& request) {
  PW_ASSIGN_OR_RETURN(const std::shared_ptr<Session> session,
                      Find(principal, request.session_id(), request.resume_token()));
  session->OnHeartbeat();
  v1::HeartbeatResponse response;
  response.set_timeout_ms(absl::ToInt64Milliseconds(limits_.timeout));
  return response;
}

absl::Status SessionTable::Close(const Principal& principal, const v1::CloseRequest& request) {
  PW_RETURN_IF_ERROR(
      Find(principal, request.session_id(), request.resume_token()).status());
  EndSession(SessionId(request.session_id()), SessionEvent::kClose, absl::OkStatus());
  return absl::OkStatus();
}

bool SessionTable::busy() const {
  return std::any_of(sessions_.begin(), sessions_.end(),
                     [](const auto& entry) { return entry.second.session->busy(); });
}

void SessionTable::Shutdown() {
  BeginDrain();
  std::vector<SessionId> ids;
  for (const auto& [id, entry] : sessions_) ids.push_back(id);
  for (const SessionId id : ids) {
    EndSession(id, SessionEvent::kShutdown,
               Error(Reason::kDraining,
                     "the daemon is shutting down; open a session with it later, or with another"));
  }
}

}  // namespace planewise
