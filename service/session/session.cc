#include "service/session/session.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "google/protobuf/util/message_differencer.h"
#include "service/session/chunk_copy.h"
#include "service/session/operation_inputs.h"
#include "service/session/session_error.h"

namespace planewise {
namespace {

using google::protobuf::util::MessageDifferencer;

// A header that comes again must be the one that came before, if that is known.
bool SameOperation(const v1::Operation& known, const v1::Operation& operation) {
  return known.kind_case() == v1::Operation::KIND_NOT_SET ||
         MessageDifferencer::Equals(known, operation);
}

UnaryResult UnaryResultOf(std::shared_ptr<const StoredResult> stored) {
  UnaryResult result;
  result.result = stored->header;
  for (const HostBuffer& tensor : stored->tensors) result.bytes.push_back(tensor.bytes());
  result.owner = std::move(stored);
  return result;
}

}  // namespace

Session::Session(SessionIdentity identity, const SessionLimits& limits,
                 SessionResources resources)
    : identity_(std::move(identity)),
      limits_(limits),
      resources_(std::move(resources)),
      last_heard_(resources_.clock->Now()),
      assembly_(limits, resources_.budget, Name()),
      results_(limits),
      runner_(std::make_shared<OperationRunner>(limits, *resources_.models, *resources_.compute,
                                                Name())) {}

std::string Session::Name() const { return absl::StrCat("session ", identity_.id.value()); }

void Session::Start(std::function<void()> on_expired) {
  on_expired_ = std::move(on_expired);
  WatchSilence(limits_.timeout);
}

// Every change of state goes through the table of session_states.h.
void Session::Apply(SessionEvent event) {
  const std::optional<SessionState> next = NextState(state_, event);
  if (next.has_value()) state_ = *next;
}

// Streams.

void Session::Attach(SessionEvent event, uint64_t result_limit, std::function<void()> wake) {
  Apply(event);
  last_heard_ = resources_.clock->Now();
  wake_ = std::move(wake);
  opened_due_ = true;
  resumed_ = event != SessionEvent::kOpen;
  results_.Restart();
  results_.RaiseLimit(result_limit);
  Wake();
}

void Session::Detach(SessionEvent event) {
  Apply(event);
  wake_ = nullptr;
  assembly_.Forget();
  checked_front_ = 0;
  FailWaitersFrom(assembly_.next_id(),
                  Error(Reason::kUnavailable,
                        absl::StrCat(Name(), ": its stream ended before the operation could "
                                             "run; send it again")));
}

absl::Status Session::OnFrame(const v1::ClientFrame& frame,
                              absl::Span<const absl::Span<const std::byte>> data,
                              std::shared_ptr<const void> owner) {
  Apply(SessionEvent::kFrame);
  last_heard_ = resources_.clock->Now();
  switch (frame.body_case()) {
    case v1::ClientFrame::kOperation:
      PW_RETURN_IF_ERROR(OnOperation(frame.operation()));
      break;
    case v1::ClientFrame::kChunk:
      PW_RETURN_IF_ERROR(AddChunk(frame.chunk().position(), data, std::move(owner)));
      break;
    case v1::ClientFrame::kAcknowledge:
      PW_RETURN_IF_ERROR(Acknowledge(frame.acknowledge().through_operation(),
                                     frame.acknowledge().result_limit()));
      break;
    default:  // a heartbeat, or a frame of a newer minor version
      return absl::OkStatus();
  }
  Pump();
  return absl::OkStatus();
}

absl::Status Session::OnOperation(const v1::Operation& operation) {
  const uint64_t id = operation.id();
  if (id == 0) return ProtocolViolation(Name(), "operation 0; ids begin at 1");
  const std::shared_ptr<const StoredResult> stored = results_.Find(id);
  const v1::Operation* known = nullptr;
  if (stored != nullptr) known = &stored->operation;
  if (running_.has_value() && running_->id() == id) known = &*running_;
  if (known != nullptr && !SameOperation(*known, operation)) {
    return ProtocolViolation(Name(), absl::StrCat("operation ", id, " came before with another "
                                                  "header; an id names one operation for ever"));
  }
  if (id >= assembly_.next_id()) return assembly_.AddOperation(operation);
  // Rule 3: executed already; the kept result goes out again, if it is kept.
  results_.Repeat(id);
  Wake();
  return absl::OkStatus();
}

// Long copies run beside the executor: it serves every session.
absl::Status Session::AddChunk(uint64_t position,
                               absl::Span<const absl::Span<const std::byte>> data,
                               std::shared_ptr<const void> owner) {
  PW_ASSIGN_OR_RETURN(ChunkCopy added, assembly_.AddChunk(position, data));
  if (owner == nullptr || added.size_bytes() <= limits_.copied_at_once_bytes_max) {
    added.Run();
    added.Finish();
    return absl::OkStatus();
  }
  ++copies_running_;
  const auto copy = std::make_shared<const ChunkCopy>(std::move(added));
  resources_.runner->Run(
      Lane::kTransport, [copy, owner = std::move(owner)] { copy->Run(); },
      [copy, weak = weak_from_this()] {
        const std::shared_ptr<Session> session = weak.lock();
        if (session == nullptr || session->state_ == SessionState::kClosed) return;
        --session->copies_running_;
        copy->Finish();
        session->Pump();
      });
  return absl::OkStatus();
}

absl::Status Session::Acknowledge(uint64_t through_operation, uint64_t result_limit) {
  const absl::Status status = results_.Acknowledge(through_operation);
  if (!status.ok()) return Annotate(status, Name());
  results_.RaiseLimit(result_limit);
  Wake();
  return absl::OkStatus();
}

std::optional<OutgoingFrame> Session::NextFrame() {
  if (opened_due_) {
    opened_due_ = false;
    OutgoingFrame frame;
    *frame.header.mutable_opened() = Opened();
    input_limit_sent_ = assembly_.input_limit();
    return frame;
  }
  if (assembly_.input_limit() > input_limit_sent_) {
    OutgoingFrame frame;
    input_limit_sent_ = assembly_.input_limit();
    frame.header.mutable_input_window()->set_input_limit(input_limit_sent_);
    return frame;
  }
  if (std::optional<OutgoingFrame> header = results_.NextHeader()) return header;
  return results_.NextChunk();
}

void Session::Wake() {
  if (wake_) wake_();
}

// Unary calls.

v1::SessionOpened Session::Opened() const {
  v1::SessionOpened opened;
  opened.set_session_id(identity_.id.value());
  opened.set_resume_token(identity_.token);
  opened.set_input_limit(assembly_.input_limit());
  opened.set_chunk_bytes_max(limits_.chunk_bytes_max);
  opened.set_unary_tensor_bytes_max(limits_.unary_tensor_bytes_max);
  opened.set_timeout_ms(absl::ToInt64Milliseconds(limits_.timeout));
  opened.set_deterministic(identity_.deterministic);
  opened.set_executed_through(results_.executed_through());
  opened.set_resumed(resumed_);
  return opened;
}

void Session::OnHeartbeat() {
  Apply(SessionEvent::kCall);
  last_heard_ = resources_.clock->Now();
}

void Session::Execute(const v1::ExecuteRequest& request, UnaryDone done) {
  OnHeartbeat();
  const uint64_t id = request.operation().id();
  const absl::Status received = ReceiveUnary(request);
  if (!received.ok()) return Answer(std::move(done), received);
  if (id <= results_.executed_through() && results_.Find(id) == nullptr) {
    return Answer(std::move(done),
                  ProtocolViolation(Name(), absl::StrCat("operation ", id, " was acknowledged: "
                                                         "its result is not kept any more")));
  }
  waiters_.emplace(id, std::move(done));
  if (id <= results_.executed_through()) AnswerWaiters(id);
  Pump();
}

// Header and inputs of a unary call, as if they had come as frames.
absl::Status Session::ReceiveUnary(const v1::ExecuteRequest& request) {
  PW_RETURN_IF_ERROR(Acknowledge(request.acknowledge_through(), 0));
  const v1::Operation& operation = request.operation();
  const std::string& inputs = request.inputs();
  if (inputs.size() > static_cast<size_t>(limits_.unary_tensor_bytes_max)) {
    return AboveLimit(Name(),
                      absl::StrCat("a unary call with ", inputs.size(),
                                   " bytes of tensors; send them on a stream"),
                      "unary_tensor_bytes_max", limits_.unary_tensor_bytes_max);
  }
  const absl::StatusOr<std::vector<FlatTensor>> tensors = InputTensors(operation, limits_);
  if (tensors.ok() && operation.id() >= assembly_.next_id()) {
    uint64_t required = 0;
    for (const FlatTensor& tensor : *tensors) required += tensor.size_bytes;
    if (inputs.size() != required) {
      return Error(Reason::kInvalidRequest,
                   absl::StrCat(Name(), ": field inputs: ", inputs.size(),
                                " bytes, the operation's tensors have ", required));
    }
    if (operation.input_position() > assembly_.input_limit() ||
        required > assembly_.input_limit() - operation.input_position()) {
      return QuotaExceeded(Name(),
                           absl::StrCat("operation ", operation.id(),
                                        " reaches beyond the input window; wait for earlier "
                                        "results"),
                           "input_window_bytes", limits_.input_window_bytes);
    }
  }
  PW_RETURN_IF_ERROR(OnOperation(operation));
  absl::Span<const std::byte> rest(reinterpret_cast<const std::byte*>(inputs.data()),
                                   tensors.ok() ? inputs.size() : 0);
  uint64_t position = operation.input_position();
  while (!rest.empty()) {
    const absl::Span<const std::byte> piece[] = {
        rest.subspan(0, static_cast<size_t>(limits_.chunk_bytes_max))};
    PW_RETURN_IF_ERROR(AddChunk(position, piece, nullptr));
    position += piece[0].size();
    rest.remove_prefix(piece[0].size());
  }
  return absl::OkStatus();
}

void Session::AnswerWaiters(uint64_t id) {
  const auto [begin, end] = waiters_.equal_range(id);
  for (auto waiter = begin; waiter != end; ++waiter) {
    Answer(std::move(waiter->second), UnaryResultOf(results_.Find(id)));
  }
  waiters_.erase(begin, end);
}

void Session::FailWaitersFrom(uint64_t id, const absl::Status& why) {
  for (auto waiter = waiters_.lower_bound(id); waiter != waiters_.end(); ++waiter) {
    Answer(std::move(waiter->second), why);
  }
  waiters_.erase(waiters_.lower_bound(id), waiters_.end());
}

void Session::Answer(UnaryDone done, absl::StatusOr<UnaryResult> result) {
  resources_.executor->Post([done = std::move(done), result = std::move(result)]() mutable {
    std::move(done)(std::move(result));
  });
}

// Execution. Rule 1: in order, one at a time.

void Session::Pump() {
  if (std::exchange(pumping_, true)) return;
  while (!running_.has_value() && StartNext()) {
  }
  pumping_ = false;
  WatchGap();
  if (assembly_.input_limit() > input_limit_sent_) Wake();
}

// Starts the next operation, or fails it; false if it must wait.
bool Session::StartNext() {
  const v1::Operation* const front = assembly_.front();
  if (front == nullptr || !results_.HasRoomFor(0)) return false;
  if (checked_front_ == front->id() && !assembly_.front_complete()) return false;
  // Asked twice of an operation whose inputs are to come: now, so that they
  // need not be sent in vain, and when they have come.
  absl::StatusOr<PreparedOperation> prepared =
      assembly_.front_failure().ok() ? runner_->Prepare(*front)
                                     : absl::StatusOr<PreparedOperation>(assembly_.front_failure());
  if (prepared.ok()) {
    assembly_.AdmitFront();
    checked_front_ = front->id();
    if (!assembly_.front_failure().ok()) prepared = assembly_.front_failure();
  }
  if (!prepared.ok()) {
    v1::Operation failed = *front;
    assembly_.DropFront();
    AddResult(std::move(failed), FailedOutcome(prepared.status()));
    return true;
  }
  if (!assembly_.front_complete() || !results_.HasRoomFor(prepared->result_bytes)) return false;
  Run(*std::move(prepared));
  return true;
}

void Session::Run(PreparedOperation prepared) {
  running_ = *assembly_.front();
  std::vector<HostBuffer> inputs = assembly_.TakeFront();
  std::move(prepared.run)(std::move(inputs),
                          [weak = weak_from_this()](OperationOutcome outcome) {
                            if (const auto session = weak.lock()) {
                              session->OnExecuted(std::move(outcome));
                            }
                          });
}

void Session::OnExecuted(OperationOutcome outcome) {
  if (state_ == SessionState::kClosed) return;
  AddResult(*std::exchange(running_, std::nullopt), std::move(outcome));
  Pump();
}

void Session::AddResult(v1::Operation operation, OperationOutcome outcome) {
  results_.Add(std::move(operation), std::move(outcome.header), std::move(outcome.tensors));
  AnswerWaiters(results_.executed_through());
  Wake();
}

// Rule 2: operations that are complete wait for the one in front of them for
// the gap time-out, counted from its last sign of progress.
void Session::WatchGap() {
  if (gap_watched_ || running_.has_value() || !assembly_.waits_for_front()) return;
  gap_watched_ = true;
  resources_.executor->PostAfter(
      limits_.gap_timeout,
      [weak = weak_from_this(), id = assembly_.next_id(), progress = assembly_.front_progress()] {
        const std::shared_ptr<Session> session = weak.lock();
        if (session == nullptr || session->state_ == SessionState::kClosed) return;
        session->gap_watched_ = false;
        const OperationAssembly& assembly = session->assembly_;
        const bool stuck = !session->running_.has_value() && assembly.waits_for_front() &&
                           assembly.next_id() == id && assembly.front_progress() == progress;
        if (stuck) session->FailGap();
        session->WatchGap();
      });
}

void Session::FailGap() {
  const uint64_t first = assembly_.next_id();
  const uint64_t last = assembly_.last_id();
  const absl::Status why =
      Error(Reason::kOperationGap,
            absl::StrCat(Name(), ": operation ", first, " did not arrive whole within ",
                         absl::FormatDuration(limits_.gap_timeout), "; operations ", first, " to ",
                         last, " are given up; go on with ", last + 1))
          .With("firstOperation", static_cast<int64_t>(first))
          .With("lastOperation", static_cast<int64_t>(last));
  while (assembly_.next_id() <= last) {
    v1::Operation operation;
    if (assembly_.front() != nullptr) operation = *assembly_.front();
    assembly_.DropFront();
    AddResult(std::move(operation), FailedOutcome(why));
  }
  Pump();
}

void Session::WatchSilence(absl::Duration delay) {
  resources_.executor->PostAfter(delay, [weak = weak_from_this()] {
    const std::shared_ptr<Session> session = weak.lock();
    if (session == nullptr || session->state_ == SessionState::kClosed) return;
    const absl::Duration silent = session->resources_.clock->Now() - session->last_heard_;
    if (silent >= session->limits_.timeout) return session->on_expired_();
    session->WatchSilence(session->limits_.timeout - silent);
  });
}

void Session::End(SessionEvent event, const absl::Status& why) {
  Apply(event);
  wake_ = nullptr;
  running_.reset();
  FailWaitersFrom(0, why);
  // What the lane still computes for it finds no runner and is dropped.
  runner_.reset();
}

}  // namespace planewise
