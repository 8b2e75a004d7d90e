#ifndef PLANEWISE_CLIENTS_CPP_SESSION_CLIENT_H_
#define PLANEWISE_CLIENTS_CPP_SESSION_CLIENT_H_
// The client's half of the session protocol (proto/README.md, "Sessions"):
// numbers operations, places their bytes, keeps the windows, acknowledges,
// and after a broken stream says everything again that the daemon lacks.
// A state machine without thread, clock or gRPC: events go in, frames come out.
//
// State of the stream, and what changes it:
//
//   state     event                                            next
//   detached  OnStreamOpened                                   opening
//   opening   `opened` of the right session                    attached
//   opening,  OnStreamBroken, a reason that may be retried     detached
//   attached    or that a lost frame may have caused
//   opening,  OnStreamBroken or `ended`, any other reason      ended
//   attached
//   attached  `ended` after Close, or no answer to it in time  ended
//   detached  retries used up; Close                           ended
//   any       the daemon breaks the protocol                   ended
//
// Not here: the gRPC stream (client_stream.h), waiting for results, threads (client_session.h).

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "clients/cpp/retry_policy.h"
#include "core/base/strong_int.h"
#include "planewise/v1/session.pb.h"

namespace planewise {

// One thread. Cost: one copy of every result byte, into the caller's memory.
//
// Whoever drives it does, after every event and when next_deadline() comes:
//
//   client.OnTimer(now);
//   if (client.wants_stream_dropped()) ...cancel the stream, OnStreamBroken()
//   if (client.WantsStream(now)) ...begin a stream, OnStreamOpened()
//   while (writable) if (auto frame = client.NextFrame(now)) ...send it
//   for (auto& completion : client.TakeCompletions()) ...tell who waits
class SessionClient {
 public:
  struct Options {
    std::string client_name;         // shown by tools
    std::string client_api_version;  // MAJOR.MINOR
    bool deterministic = true;
    // Result bytes that may be on their way: how far result_limit is ahead of what came.
    int64_t result_window_bytes = int64_t{64} << 20;
    // A stream on which nothing moves for this long although the daemon owes
    // an answer counts as broken. Doubles while that does not help, since a
    // slow operation looks the same.
    absl::Duration silence_timeout = absl::Seconds(60);
    // How long Close waits for the daemon's answer.
    absl::Duration close_timeout = absl::Seconds(2);
    // For streams that fail. A session that exists is given up only when the
    // daemon has given it up too: after its own time-out.
    RetryPolicy retry;
    // Streams in a row that may end with PROTOCOL_VIOLATION without any result
    // between. A lost frame looks like a violation, so the first ones are resumed.
    int violations_max = 8;
  };

  // A frame to send. `data` is chunk.data and not in `frame`: it is memory of the
  // caller of operation `lender`. Who sends it later than now must keep that caller from
  // taking the memory back, even if the operation's completion comes meanwhile.
  struct OutgoingFrame {
    v1::ClientFrame frame;
    absl::string_view data;
    OperationId lender;  // 0: no data
  };

  // The end of an operation. Its result bytes are in the caller's memory; after
  // a failure those are unspecified.
  struct Completion {
    OperationId id;
    absl::StatusOr<v1::OperationResult> result;
  };

  // `random` gives numbers uniform in [0, 1), for the delays between streams.
  SessionClient(Options options, std::function<double()> random);

  // Queues `operation`; its id and input_position are set here. `inputs` and
  // `outputs` hold the tensors' bytes in the order of the message's fields.
  // Both are the caller's until the completion, and inputs must not change: they
  // are sent again after a broken stream. An output's size must be its tensor's;
  // else the operation, although executed, fails here with SHAPE_MISMATCH.
  // INVALID_ARGUMENT for inputs of the wrong sizes; the reason the session
  // ended for, if it has.
  absl::StatusOr<OperationId> Submit(absl::Time now, v1::Operation operation,
                                     std::vector<absl::string_view> inputs,
                                     std::vector<absl::Span<char>> outputs);

  // Ends the session: what is queued or running completes with CANCELLED now, the
  // daemon is told if there is a stream. Until ended(), go on driving.
  void Close(absl::Time now);

  // Events of the stream.
  void OnStreamOpened(absl::Time now);
  void OnFrame(absl::Time now, const v1::ServerFrame& frame,
               absl::Span<const absl::string_view> data);
  // The stream is gone, for `status`; OK if the daemon ended it in good order.
  void OnStreamBroken(absl::Time now, const absl::Status& status);
  void OnTimer(absl::Time now);

  // What to do next.
  bool WantsStream(absl::Time now) const;
  bool wants_stream_dropped() const;
  std::optional<OutgoingFrame> NextFrame(absl::Time now);
  std::vector<Completion> TakeCompletions();
  // When something becomes due without any other event; InfiniteFuture: never.
  absl::Time next_deadline() const;

  bool attached() const { return state_ == State::kAttached; }
  bool ended() const { return state_ == State::kEnded; }
  // Why the session ended; OK while it lives and after an orderly Close.
  const absl::Status& end_status() const { return end_status_; }
  // What the daemon said when the session was opened; session_id 0: not yet.
  const v1::SessionOpened& opened() const { return opened_; }
  // Streams begun after the first, for tools and tests.
  int64_t reconnect_count() const { return reconnect_count_; }

 private:
  enum class State { kDetached, kOpening, kAttached, kEnded };

  // An operation without a completion yet.
  struct Pending {
    v1::Operation operation;  // with its id and input_position
    std::vector<absl::string_view> inputs;
    std::vector<absl::Span<char>> outputs;
    uint64_t input_end = 0;  // position
    std::optional<v1::OperationResult> result;
    absl::Status output_error;  // why the result's bytes cannot be placed
  };

  uint64_t FrontId() const { return next_id_ - pending_.size(); }
  Pending* Find(uint64_t id);

  void OnOpened(absl::Time now, const v1::SessionOpened& opened);
  void OnResult(absl::Time now, const v1::OperationResult& result);
  void OnChunk(absl::Time now, uint64_t position, absl::Span<const absl::string_view> data);
  void OnEnded(absl::Time now, const absl::Status& status);

  void Place(const Pending& pending, absl::string_view bytes);
  void CompleteFront(absl::Time now);

  std::optional<OutgoingFrame> OpenFrame(absl::Time now);
  std::optional<OutgoingFrame> CloseFrame();
  bool AcknowledgeIsDue() const;
  OutgoingFrame AcknowledgeFrame();
  std::optional<OutgoingFrame> OperationFrame(absl::Time now);
  const Pending* NextToSend();
  static absl::string_view InputsAt(const Pending& pending, uint64_t position);
  uint64_t result_limit() const { return results_received_ + options_.result_window_bytes; }

  bool AwaitsDaemon() const;
  absl::Time SilenceDeadline() const;
  absl::Duration heartbeat_interval() const;
  void Progress(absl::Time now);
  void Detach(absl::Time now, const absl::Status& why);
  void End(absl::Status why);
  void EndForBrokenDaemon(absl::string_view what);

  const Options options_;
  const std::function<double()> random_;

  State state_ = State::kDetached;
  bool has_stream_ = false;  // begun, and not known to be gone
  bool closing_ = false;
  absl::Status end_status_;
  v1::SessionOpened opened_;

  // Operations in order of their ids, the last one being next_id_ - 1.
  std::deque<Pending> pending_;
  uint64_t next_id_ = 1;
  uint64_t inputs_end_ = 0;  // position after the last operation's inputs
  std::vector<Completion> completions_;

  // Sending. Operation send_id_ is next; its header may have gone already.
  bool open_sent_ = false;
  bool close_sent_ = false;
  uint64_t send_id_ = 1;
  bool header_sent_ = false;
  uint64_t send_position_ = 0;
  uint64_t input_limit_ = 0;
  absl::Time last_sent_ = absl::InfinitePast();

  // Receiving.
  uint64_t results_received_ = 0;  // position: all bytes before it came
  uint64_t results_begin_ = 0;     // position where the front operation's result begins
  bool acknowledge_due_ = false;
  uint64_t result_limit_sent_ = 0;

  // Time.
  absl::Time last_progress_ = absl::InfinitePast();
  int silences_ = 0;  // in a row
  int violations_ = 0;
  int attempts_ = 0;  // streams that failed in a row
  absl::Time detached_since_ = absl::InfinitePast();
  absl::Time reconnect_at_ = absl::InfinitePast();
  int64_t reconnect_count_ = 0;
};

}  // namespace planewise

#endif  // PLANEWISE_CLIENTS_CPP_SESSION_CLIENT_H_
