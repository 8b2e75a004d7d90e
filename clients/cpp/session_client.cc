#include "clients/cpp/session_client.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "clients/cpp/operation_tensors.h"
#include "core/base/error.h"
#include "core/base/reason.h"
#include "core/base/status_macros.h"
#include "proto/status/status_codec.h"

namespace planewise {
namespace {

// How often the silence time-out may double: 64 times it is as good as for ever.
constexpr int kSilenceDoublingsMax = 6;

// How many operations may be sent ahead of the last result: the daemon has a limit too, and
// more of them in flight gain nothing.
constexpr uint64_t kOperationsAheadMax = 1024;

// The daemon wants a sign of life three times in its time-out.
constexpr int kHeartbeatsPerTimeout = 3;

template <typename Spans>
uint64_t TotalSize(const Spans& spans) {
  uint64_t total = 0;
  for (const auto& span : spans) total += span.size();
  return total;
}

absl::Status SessionClosed() {
  return Error(Reason::kCancelled, "session: closed by its client; open another one");
}

// Reasons that end the stream but say nothing about the session.
bool MayResume(const absl::Status& status) {
  if (status.ok()) return true;
  const std::optional<Reason> reason = ReasonOf(status);
  return !reason || *reason == Reason::kProtocolViolation ||
         FactsOf(*reason).retry == Retry::kSameRequest;
}

// `why` as RetryDelay takes it: a stream that broke without a word is as good as
// a daemon that cannot be reached.
absl::Status AsRetryable(const absl::Status& why) {
  const std::optional<Reason> reason = ReasonOf(why);
  if (reason && FactsOf(*reason).retry == Retry::kSameRequest) return why;
  return absl::UnavailableError(why.message());
}

}  // namespace

SessionClient::SessionClient(Options options, std::function<double()> random)
    : options_(std::move(options)), random_(std::move(random)) {}

SessionClient::Pending* SessionClient::Find(uint64_t id) {
  if (id < FrontId() || id >= next_id_) return nullptr;
  return &pending_[id - FrontId()];
}

absl::StatusOr<OperationId> SessionClient::Submit(absl::Time now, v1::Operation operation,
                                                  std::vector<absl::string_view> inputs,
                                                  std::vector<absl::Span<char>> outputs) {
  if (closing_) return SessionClosed();
  if (ended()) return end_status_;
  PW_RETURN_IF_ERROR(CheckInputs(operation, inputs));
  if (pending_.empty()) last_progress_ = now;  // The daemon owed nothing until now.
  Pending pending;
  pending.operation = std::move(operation);
  pending.operation.set_id(next_id_);
  pending.operation.set_input_position(inputs_end_);
  inputs_end_ += TotalSize(inputs);
  pending.input_end = inputs_end_;
  pending.inputs = std::move(inputs);
  pending.outputs = std::move(outputs);
  pending_.push_back(std::move(pending));
  return OperationId(next_id_++);
}

void SessionClient::Close(absl::Time now) {
  if (closing_ || ended()) return;
  closing_ = true;
  while (!pending_.empty()) {
    completions_.push_back({OperationId(FrontId()), SessionClosed()});
    pending_.pop_front();
  }
  last_progress_ = now;
  // Without a stream the daemon learns of it by its own time-out.
  if (state_ != State::kAttached) End(absl::OkStatus());
}

void SessionClient::OnStreamOpened(absl::Time now) {
  if (state_ != State::kDetached) return;
  state_ = State::kOpening;
  has_stream_ = true;
  open_sent_ = false;
  if (attempts_ > 0 || opened_.session_id() != 0) ++reconnect_count_;
  last_progress_ = now;
}

void SessionClient::OnFrame(absl::Time now, const v1::ServerFrame& frame,
                            absl::Span<const absl::string_view> data) {
  if (state_ != State::kOpening && state_ != State::kAttached) return;
  switch (frame.body_case()) {
    case v1::ServerFrame::kOpened:
      return OnOpened(now, frame.opened());
    case v1::ServerFrame::kResult:
      return OnResult(now, frame.result());
    case v1::ServerFrame::kChunk:
      return OnChunk(now, frame.chunk().position(), data);
    case v1::ServerFrame::kInputWindow:
      if (frame.input_window().input_limit() > input_limit_) Progress(now);
      input_limit_ = std::max(input_limit_, frame.input_window().input_limit());
      return;
    case v1::ServerFrame::kEnded:
      return OnEnded(now, StatusFromProto(frame.ended().status()));
    case v1::ServerFrame::BODY_NOT_SET:
      return;  // A frame of a newer minor version.
  }
}

void SessionClient::OnOpened(absl::Time now, const v1::SessionOpened& opened) {
  if (state_ == State::kAttached) return;  // Came twice.
  const bool resuming = opened_.session_id() != 0;
  if (resuming && opened.session_id() != opened_.session_id()) {
    return EndForBrokenDaemon(
        absl::StrCat("a resume was answered with session ", opened.session_id()));
  }
  if (opened.executed_through() >= next_id_ || opened.executed_through() + 1 < FrontId()) {
    return EndForBrokenDaemon(absl::StrCat("it executed operations through ",
                                           opened.executed_through(), ", required from ",
                                           FrontId() - 1, " to ", next_id_ - 1));
  }
  if (opened.chunk_bytes_max() <= 0 || opened.timeout_ms() <= 0) {
    return EndForBrokenDaemon(absl::StrCat("chunk_bytes_max ", opened.chunk_bytes_max(),
                                           " and timeout_ms ", opened.timeout_ms(),
                                           ", required above 0"));
  }
  opened_ = opened;
  state_ = State::kAttached;
  attempts_ = 0;
  last_progress_ = now;
  input_limit_ = opened.input_limit();
  // The daemon has forgotten what it had of operations that it did not execute.
  send_id_ = opened.executed_through() + 1;
  header_sent_ = false;
  acknowledge_due_ = FrontId() > 1;
}

void SessionClient::OnResult(absl::Time now, const v1::OperationResult& result) {
  if (result.id() == 0 || result.id() >= next_id_) {
    return EndForBrokenDaemon(
        absl::StrCat("a result of operation ", result.id(), ", which was never sent"));
  }
  Pending* const pending = Find(result.id());
  if (pending == nullptr) {
    acknowledge_due_ = true;  // It did not hear that we have this one.
    return;
  }
  if (pending->result) return;  // Came twice.
  const bool failed = result.status().code() != 0;
  if (result.result_bytes() < 0 || (failed && result.result_bytes() != 0)) {
    return EndForBrokenDaemon(
        absl::StrCat("a result of ", result.result_bytes(), " bytes for operation ", result.id()));
  }
  if (!failed) {
    const absl::Status answer = CheckAnswer(pending->operation, result);
    if (!answer.ok()) return EndForBrokenDaemon(answer.message());
    pending->output_error = CheckOutputs(result, pending->outputs);
  }
  pending->result = result;
  Progress(now);
  violations_ = 0;
  CompleteFront(now);
}

void SessionClient::OnChunk(absl::Time now, uint64_t position,
                            absl::Span<const absl::string_view> data) {
  const uint64_t size = TotalSize(data);
  if (size > std::numeric_limits<uint64_t>::max() - position ||
      position + size > result_limit_sent_) {
    return EndForBrokenDaemon(absl::StrCat("a chunk of ", size, " bytes at position ", position,
                                           " crosses the limit ", result_limit_sent_));
  }
  // Bytes between are missing: they will come again, and these too.
  if (position > results_received_) return;
  uint64_t known = results_received_ - position;
  for (absl::string_view piece : data) {
    const uint64_t skipped = std::min<uint64_t>(known, piece.size());
    piece.remove_prefix(skipped);
    known -= skipped;
    while (!piece.empty()) {
      // Without its header nobody knows where the bytes belong.
      if (pending_.empty() || !pending_.front().result) return;
      const Pending& front = pending_.front();
      const uint64_t result_end = results_begin_ + front.result->result_bytes();
      const absl::string_view part = piece.substr(0, result_end - results_received_);
      if (front.output_error.ok()) Place(front, part);
      results_received_ += part.size();
      piece.remove_prefix(part.size());
      Progress(now);
      CompleteFront(now);
      if (ended()) return;
    }
  }
}

// Copies bytes that begin at results_received_ to where the caller wants them.
void SessionClient::Place(const Pending& pending, absl::string_view bytes) {
  uint64_t offset = results_received_ - results_begin_;
  for (const absl::Span<char>& output : pending.outputs) {
    if (offset >= output.size()) {
      offset -= output.size();
      continue;
    }
    const size_t size = std::min<size_t>(bytes.size(), output.size() - offset);
    std::copy_n(bytes.data(), size, output.data() + offset);
    bytes.remove_prefix(size);
    if (bytes.empty()) return;
    offset = 0;
  }
}

// Completes operations at the front whose results are whole.
void SessionClient::CompleteFront(absl::Time now) {
  while (!pending_.empty() && pending_.front().result) {
    Pending& front = pending_.front();
    const uint64_t result_bytes = front.result->result_bytes();
    if (result_bytes > 0 && front.result->result_position() != results_begin_) {
      return EndForBrokenDaemon(
          absl::StrCat("the result of operation ", FrontId(), " begins at position ",
                       front.result->result_position(), ", required ", results_begin_));
    }
    if (results_received_ < results_begin_ + result_bytes) return;
    absl::Status status = StatusFromProto(front.result->status());
    if (status.ok()) status = front.output_error;
    const OperationId id(FrontId());
    if (status.ok()) {
      completions_.push_back({id, *std::move(front.result)});
    } else {
      completions_.push_back({id, std::move(status)});
    }
    pending_.pop_front();
    results_begin_ = results_received_;
    acknowledge_due_ = true;
    Progress(now);
  }
}

void SessionClient::OnEnded(absl::Time now, const absl::Status& status) {
  if (closing_) return End(absl::OkStatus());
  if (status.ok()) {
    return End(Error(Reason::kSessionExpired,
                     "session: the daemon closed it; open another one and restart the step"));
  }
  Detach(now, status);
}

void SessionClient::OnStreamBroken(absl::Time now, const absl::Status& status) {
  has_stream_ = false;
  if (state_ == State::kOpening || state_ == State::kAttached) Detach(now, status);
}

// The stream is of no more use, for `why`: resume later or give up.
void SessionClient::Detach(absl::Time now, const absl::Status& why) {
  if (closing_) return End(absl::OkStatus());
  if (!MayResume(why)) return End(why);
  if (ReasonOf(why) == Reason::kProtocolViolation && ++violations_ >= options_.violations_max) {
    return End(why);
  }
  state_ = State::kDetached;
  if (attempts_++ == 0) detached_since_ = now;
  RetryPolicy policy = options_.retry;
  if (opened_.session_id() != 0) policy.give_up_after = absl::Milliseconds(opened_.timeout_ms());
  const std::optional<absl::Duration> delay =
      RetryDelay(policy, AsRetryable(why), attempts_, now - detached_since_, random_());
  if (!delay) {
    return End(Error(Reason::kUnavailable,
                     absl::StrCat("session: no stream to the daemon for ",
                                  absl::FormatDuration(now - detached_since_), " and ", attempts_,
                                  " attempts: ", why.message())));
  }
  reconnect_at_ = now + *delay;
}

void SessionClient::OnTimer(absl::Time now) {
  if (now < SilenceDeadline()) return;
  if (closing_) return End(absl::OkStatus());
  if (attached()) silences_ = std::min(silences_ + 1, kSilenceDoublingsMax);
  Detach(now, absl::UnavailableError("the daemon has gone silent"));
}

bool SessionClient::WantsStream(absl::Time now) const {
  return state_ == State::kDetached && !has_stream_ && now >= reconnect_at_;
}

bool SessionClient::wants_stream_dropped() const {
  return has_stream_ && (state_ == State::kDetached || state_ == State::kEnded);
}

std::optional<SessionClient::OutgoingFrame> SessionClient::NextFrame(absl::Time now) {
  if (state_ == State::kOpening) return OpenFrame(now);
  if (state_ != State::kAttached) return std::nullopt;
  std::optional<OutgoingFrame> next;
  if (closing_) {
    next = CloseFrame();
  } else if (AcknowledgeIsDue()) {
    next = AcknowledgeFrame();
  } else {
    next = OperationFrame(now);
    if (!next && now >= last_sent_ + heartbeat_interval()) {
      next.emplace().frame.mutable_heartbeat();
    }
  }
  if (next) last_sent_ = now;
  return next;
}

std::optional<SessionClient::OutgoingFrame> SessionClient::OpenFrame(absl::Time now) {
  if (open_sent_) return std::nullopt;
  open_sent_ = true;
  last_sent_ = now;
  result_limit_sent_ = result_limit();
  OutgoingFrame next;
  v1::OpenSession& open = *next.frame.mutable_open();
  open.set_session_id(opened_.session_id());
  open.set_resume_token(opened_.resume_token());
  open.set_client_api_version(options_.client_api_version);
  open.set_client_name(options_.client_name);
  open.set_result_limit(result_limit_sent_);
  open.set_deterministic(options_.deterministic);
  return next;
}

std::optional<SessionClient::OutgoingFrame> SessionClient::CloseFrame() {
  if (close_sent_) return std::nullopt;
  close_sent_ = true;
  OutgoingFrame next;
  next.frame.mutable_close();
  return next;
}

// Results that arrive move the limit; half a window is worth a frame.
bool SessionClient::AcknowledgeIsDue() const {
  return acknowledge_due_ ||
         result_limit() - result_limit_sent_ > uint64_t(options_.result_window_bytes) / 2;
}

SessionClient::OutgoingFrame SessionClient::AcknowledgeFrame() {
  acknowledge_due_ = false;
  result_limit_sent_ = result_limit();
  OutgoingFrame next;
  next.frame.mutable_acknowledge()->set_through_operation(FrontId() - 1);
  next.frame.mutable_acknowledge()->set_result_limit(result_limit_sent_);
  return next;
}

// The next header, or the next part of the inputs that the window lets through.
std::optional<SessionClient::OutgoingFrame> SessionClient::OperationFrame(absl::Time now) {
  while (const Pending* pending = NextToSend()) {
    OutgoingFrame next;
    if (!header_sent_) {
      header_sent_ = true;
      send_position_ = pending->operation.input_position();
      *next.frame.mutable_operation() = pending->operation;
    } else if (send_position_ == pending->input_end) {
      header_sent_ = false;
      ++send_id_;
      continue;
    } else {
      if (send_position_ >= input_limit_) return std::nullopt;
      next.data = InputsAt(*pending, send_position_)
                      .substr(0, std::min<uint64_t>(input_limit_ - send_position_,
                                                    opened_.chunk_bytes_max()));
      next.lender = OperationId(send_id_);
      next.frame.mutable_chunk()->set_position(send_position_);
      send_position_ += next.data.size();
    }
    last_progress_ = now;
    return next;
  }
  return std::nullopt;
}

// The operation at send_id_, after those of which the daemon needs no more: it
// may refuse an operation before its inputs have come.
const SessionClient::Pending* SessionClient::NextToSend() {
  while (send_id_ < std::min(next_id_, FrontId() + kOperationsAheadMax)) {
    const Pending* pending = Find(send_id_);
    if (pending != nullptr && !pending->result) return pending;
    header_sent_ = false;
    ++send_id_;
  }
  return nullptr;
}

// From `position` to the end of the input tensor that it lies in.
absl::string_view SessionClient::InputsAt(const Pending& pending, uint64_t position) {
  uint64_t offset = position - pending.operation.input_position();
  for (const absl::string_view input : pending.inputs) {
    if (offset < input.size()) return input.substr(offset);
    offset -= input.size();
  }
  return {};
}

std::vector<SessionClient::Completion> SessionClient::TakeCompletions() {
  return std::exchange(completions_, {});
}

bool SessionClient::AwaitsDaemon() const {
  return state_ == State::kOpening ||
         (state_ == State::kAttached && (closing_ || !pending_.empty()));
}

absl::Time SessionClient::SilenceDeadline() const {
  if (!AwaitsDaemon()) return absl::InfiniteFuture();
  if (closing_) return last_progress_ + options_.close_timeout;
  // Only an operation can take its time; `open` is answered at once.
  return last_progress_ + options_.silence_timeout * (attached() ? 1 << silences_ : 1);
}

absl::Duration SessionClient::heartbeat_interval() const {
  return absl::Milliseconds(opened_.timeout_ms()) / kHeartbeatsPerTimeout;
}

absl::Time SessionClient::next_deadline() const {
  if (state_ == State::kDetached && !has_stream_) return reconnect_at_;
  if (state_ == State::kAttached) {
    return std::min(SilenceDeadline(), last_sent_ + heartbeat_interval());
  }
  return SilenceDeadline();
}

void SessionClient::Progress(absl::Time now) {
  last_progress_ = now;
  silences_ = 0;
}

void SessionClient::End(absl::Status why) {
  if (ended()) return;
  state_ = State::kEnded;
  end_status_ = std::move(why);
  for (; !pending_.empty(); pending_.pop_front()) {
    completions_.push_back({OperationId(FrontId()), end_status_});
  }
}

void SessionClient::EndForBrokenDaemon(absl::string_view what) {
  End(Error(Reason::kInternal, absl::StrCat("session ", opened_.session_id(), ": ", what,
                                            "; the daemon breaks the session protocol: report "
                                            "it")));
}

}  // namespace planewise
