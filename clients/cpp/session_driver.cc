#include "clients/cpp/session_driver.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "grpcpp/channel.h"

namespace planewise {
namespace {

// A deadline may pass while a write is stuck that would meet it: look again, but
// not at once.
constexpr absl::Duration kTimerDelayMin = absl::Milliseconds(10);

}  // namespace

SessionDriver::SessionDriver(std::shared_ptr<grpc::Channel> channel, std::string token,
                             Executor* timers, SessionClient::Options options)
    : channel_(std::move(channel)),
      token_(std::move(token)),
      timers_(timers),
      client_(std::move(options), [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
        return absl::Uniform(random_, 0.0, 1.0);  // Under the lock, as all of client_.
      }) {}

absl::Status SessionDriver::Open() {
  Drive();
  MutexLock lock(mutex_);
  while (!client_.attached() && !client_.ended()) changed_.Wait(mutex_);
  return client_.end_status();
}

absl::StatusOr<OperationTicket> SessionDriver::Start(v1::Operation operation,
                                                     std::vector<absl::string_view> inputs,
                                                     std::vector<absl::Span<char>> outputs) {
  auto flight = std::make_shared<Flight>();
  OperationTicket ticket = flight->ticket();
  {
    MutexLock lock(mutex_);
    PW_ASSIGN_OR_RETURN(
        const OperationId id,
        client_.Submit(clock_.Now(), std::move(operation), std::move(inputs), std::move(outputs)));
    flights_.emplace(id, std::move(flight));
  }
  Drive();
  return ticket;
}

void SessionDriver::Close() {
  {
    MutexLock lock(mutex_);
    client_.Close(clock_.Now());
  }
  Drive();
}

void SessionDriver::AwaitEnd() {
  std::vector<OperationTicket> landing;
  {
    MutexLock lock(mutex_);
    while (!client_.ended() || streams_alive_ > 0) changed_.Wait(mutex_);
    landing.swap(landing_);
  }
  for (const OperationTicket& ticket : landing) ticket.Wait();
}

bool SessionDriver::Pause(absl::Duration delay) {
  MutexLock lock(mutex_);
  const absl::Time end = clock_.Now() + delay;
  while (!client_.ended()) {
    const absl::Duration left = end - clock_.Now();
    if (left <= absl::ZeroDuration()) return true;
    changed_.WaitFor(mutex_, absl::ToChronoNanoseconds(left));
  }
  return false;
}

uint64_t SessionDriver::session_id() const {
  MutexLock lock(mutex_);
  return client_.opened().session_id();
}

int64_t SessionDriver::reconnect_count() const {
  MutexLock lock(mutex_);
  return client_.reconnect_count();
}

void SessionDriver::OnFrame(const ClientStream& stream, const SplitFrame<v1::ServerFrame>& frame) {
  std::vector<absl::string_view> data;
  data.reserve(frame.data.size());
  for (const grpc::Slice& slice : frame.data) {
    data.emplace_back(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  {
    MutexLock lock(mutex_);
    if (&stream != stream_.get()) return;
    client_.OnFrame(clock_.Now(), frame.header, data);
  }
  Drive();
}

void SessionDriver::OnWritten(const ClientStream& stream) {
  {
    MutexLock lock(mutex_);
    if (&stream != stream_.get()) return;
    writing_ = false;
  }
  Drive();
}

void SessionDriver::OnBroken(const ClientStream& stream, const absl::Status& status) {
  {
    MutexLock lock(mutex_);
    --streams_alive_;
    if (&stream == stream_.get()) {
      stream_.reset();
      client_.OnStreamBroken(clock_.Now(), status);
    }
  }
  Drive();
}

void SessionDriver::OnTimer(absl::Time due) {
  {
    MutexLock lock(mutex_);
    if (timer_due_ == due) timer_due_ = absl::InfiniteFuture();
    client_.OnTimer(clock_.Now());
  }
  Drive();
}

// Whoever finds another thread here may leave: that thread looks again, under the
// lock, before it goes.
void SessionDriver::Drive() {
  {
    MutexLock lock(mutex_);
    if (driving_) return;
    driving_ = true;
  }
  while (true) {
    Action action;
    {
      MutexLock lock(mutex_);
      action = NextAction();
      if (std::holds_alternative<std::monostate>(action)) {
        SetTimer();
        driving_ = false;
        changed_.NotifyAll();
        return;
      }
    }
    if (auto* cancel = std::get_if<Cancel>(&action)) cancel->stream->Cancel();
    if (std::holds_alternative<Begin>(action)) BeginStream();
    if (auto* write = std::get_if<Write>(&action)) WriteFrame(std::move(*write));
  }
}

SessionDriver::Action SessionDriver::NextAction() {
  Complete();
  const absl::Time now = clock_.Now();
  if (client_.wants_stream_dropped() && stream_ != nullptr) {
    // Events of this stream mean nothing any more.
    client_.OnStreamBroken(now, absl::CancelledError("dropped"));
    return Cancel{std::exchange(stream_, nullptr)};
  }
  if (client_.WantsStream(now)) return Begin{};
  if (stream_ == nullptr || writing_) return std::monostate();
  std::optional<SessionClient::OutgoingFrame> frame = client_.NextFrame(now);
  if (!frame) return std::monostate();
  writing_ = true;
  std::shared_ptr<Flight> lender;
  if (!frame->data.empty()) lender = flights_.at(frame->lender);
  return Write{stream_, *std::move(frame), std::move(lender)};
}

void SessionDriver::BeginStream() {
  const std::shared_ptr<ClientStream> stream =
      ClientStream::Create(channel_, token_, timers_, shared_from_this());
  {
    MutexLock lock(mutex_);
    stream_ = stream;
    writing_ = false;
    ++streams_alive_;
    client_.OnStreamOpened(clock_.Now());
  }
  stream->Start();
}

void SessionDriver::WriteFrame(Write write) {
  grpc::Slice data;
  if (!write.frame.data.empty()) {
    // The operation is not done before gRPC has given the memory back.
    data = LendSlice(write.frame.data, [lender = std::move(write.lender)] {});
  }
  write.stream->Write(MakeFrame(write.frame.frame, data));
}

void SessionDriver::Complete() {
  for (SessionClient::Completion& completion : client_.TakeCompletions()) {
    const auto flight = flights_.find(completion.id);
    OperationTicket ticket = flight->second->ticket();
    flight->second->SetResult(std::move(completion.result));
    flights_.erase(flight);
    landing_.push_back(std::move(ticket));
  }
  std::erase_if(landing_,
                [](const OperationTicket& ticket) { return ticket.Wait(absl::ZeroDuration()); });
}

void SessionDriver::SetTimer() {
  const absl::Time due = client_.next_deadline();
  if (due >= timer_due_) return;
  timer_due_ = due;
  const absl::Duration delay = std::max(due - clock_.Now(), kTimerDelayMin);
  timers_->PostAfter(delay, [driver = weak_from_this(), due] {
    if (const std::shared_ptr<SessionDriver> alive = driver.lock()) alive->OnTimer(due);
  });
}

}  // namespace planewise
