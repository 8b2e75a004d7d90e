#ifndef PLANEWISE_SERVICE_RPC_PROGRESS_STREAM_H_
#define PLANEWISE_SERVICE_RPC_PROGRESS_STREAM_H_
// A call that tells progress and ends with a result. A slow client gets fewer
// progress messages, never a queue of them: one write is in flight, and of what
// comes meanwhile only the newest is kept.
//
// Not here: streams of tensor bytes (weight_stream.h, session_stream.h).

#include <memory>
#include <optional>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "grpcpp/support/server_callback.h"
#include "service/rpc/call.h"

namespace planewise {

// Deletes itself. Tell() and End() on the executor only.
template <typename Response>
class ProgressStream final : public grpc::ServerWriteReactor<Response> {
 public:
  explicit ProgressStream(std::shared_ptr<Call> call) : call_(std::move(call)) {}

  void Tell(Response progress) {
    if (broken_) return;
    if (writing_) {
      next_ = std::move(progress);
    } else {
      Write(std::move(progress));
    }
  }

  // The result, written after what is in flight, or the failure. Do not touch
  // the stream afterwards.
  void End(absl::StatusOr<Response> result) {
    status_ = result.status();
    ending_ = true;
    next_.reset();
    if (result.ok() && !broken_) next_ = *std::move(result);
    if (!writing_) Continue();
  }

  void OnWriteDone(bool ok) override {
    call_->executor().Post([this, ok] {
      writing_ = false;
      broken_ = broken_ || !ok;
      Continue();
    });
  }
  void OnCancel() override { call_->PostCancel(); }
  void OnDone() override { delete this; }

 private:
  void Write(Response message) {
    writing_ = true;
    current_ = std::move(message);
    this->StartWrite(&current_);
  }

  void Continue() {
    if (next_ && !broken_) {
      Write(*std::exchange(next_, std::nullopt));
    } else if (ending_) {
      this->Finish(call_->Close(status_));
    }
  }

  const std::shared_ptr<Call> call_;
  Response current_;  // being written
  std::optional<Response> next_;
  absl::Status status_;
  bool writing_ = false;
  bool ending_ = false;
  bool broken_ = false;  // the client is gone
};

// `logic` calls End() of the stream exactly once, now or later.
template <typename Response>
grpc::ServerWriteReactor<Response>* StartProgress(
    const RpcEnvironment& environment, grpc::CallbackServerContext& context,
    absl::string_view method,
    absl::AnyInvocable<void(Call&, ProgressStream<Response>&) &&> logic) {
  std::shared_ptr<Call> call = Call::Begin(environment, context, CallKind::kNew, method);
  auto* stream = new ProgressStream<Response>(call);
  if (!call->admission().ok()) {
    stream->End(call->admission());
    return stream;
  }
  call->executor().Post([call, stream, logic = std::move(logic)]() mutable {
    std::move(logic)(*call, *stream);
  });
  return stream;
}

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_RPC_PROGRESS_STREAM_H_
