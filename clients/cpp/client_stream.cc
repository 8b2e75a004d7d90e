#include "clients/cpp/client_stream.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "grpcpp/channel.h"
#include "proto/status/grpc_status.h"

namespace planewise {
namespace {

constexpr char kMethod[] = "/planewise.v1.Sessions/Stream";

// Why the stream ended. What the daemon says has details; these codes without any are
// gRPC's, for a connection or stream that was reset.
absl::Status StreamStatus(const grpc::Status& status) {
  switch (status.error_code()) {
    case grpc::StatusCode::CANCELLED:
    case grpc::StatusCode::UNKNOWN:
    case grpc::StatusCode::INTERNAL:
      if (status.error_details().empty()) return absl::UnavailableError(status.error_message());
      break;
    default:
      break;
  }
  return StatusFromGrpc(status);
}

}  // namespace

ClientStream::ClientStream(std::shared_ptr<grpc::Channel> channel, Executor* executor,
                           std::shared_ptr<Events> events)
    : stub_(std::move(channel)), executor_(executor), events_(std::move(events)) {}

std::shared_ptr<ClientStream> ClientStream::Create(std::shared_ptr<grpc::Channel> channel,
                                                   absl::string_view token, Executor* executor,
                                                   std::shared_ptr<Events> events) {
  const std::shared_ptr<ClientStream> stream(
      new ClientStream(std::move(channel), executor, std::move(events)));
  if (!token.empty()) stream->context_.AddMetadata("authorization", absl::StrCat("Bearer ", token));
  return stream;
}

void ClientStream::Start() {
  self_ = shared_from_this();
  stub_.PrepareBidiStreamingCall(&context_, kMethod, {}, this);
  // Writes begin outside of reactions: without a hold, OnDone could overtake one.
  AddHold();
  StartRead(&received_);
  StartCall();
}

void ClientStream::Write(grpc::ByteBuffer frame) {
  {
    MutexLock lock(mutex_);
    if (closed_) return;
    writing_ = true;
  }
  written_.Swap(&frame);
  StartWrite(&written_);
}

void ClientStream::Cancel() { context_.TryCancel(); }

void ClientStream::OnReadDone(bool ok) {
  if (!ok) {
    {
      MutexLock lock(mutex_);
      closed_ = true;
    }
    RemoveHoldIfIdle();
    return;
  }
  {
    const absl::StatusOr<SplitFrame<v1::ServerFrame>> frame = Split<v1::ServerFrame>(received_);
    received_.Clear();
    if (frame.ok()) {
      events_->OnFrame(*this, *frame);
    } else if (bad_frame_.ok()) {
      bad_frame_ = frame.status();
      Cancel();
    }
  }
  StartRead(&received_);
}

void ClientStream::OnWriteDone(bool ok) {
  // Before anybody may write again, so that nothing is lent longer than needed.
  written_.Clear();
  {
    MutexLock lock(mutex_);
    writing_ = false;
    closed_ = closed_ || !ok;
  }
  if (ok) events_->OnWritten(*this);
  RemoveHoldIfIdle();
}

void ClientStream::RemoveHoldIfIdle() {
  {
    MutexLock lock(mutex_);
    if (!closed_ || writing_ || !held_) return;
    held_ = false;
  }
  RemoveHold();
}

void ClientStream::OnDone(const grpc::Status& status) {
  absl::Status why = bad_frame_.ok() ? StreamStatus(status) : bad_frame_;
  executor_->Post(
      [self = std::move(self_), why = std::move(why)] { self->events_->OnBroken(*self, why); });
}

}  // namespace planewise
