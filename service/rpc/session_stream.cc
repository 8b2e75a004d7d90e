#include "service/rpc/session_stream.h"

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/error.h"
#include "planewise/v1/session.pb.h"
#include "proto/frame/frame_codec.h"
#include "proto/status/status_codec.h"

namespace planewise {
namespace {

using ClientFrame = SplitFrame<v1::ClientFrame>;

// Frames that may wait for the executor, or for their bytes to be copied, while
// gRPC reads the next one: enough to keep all at work, few enough to cost little
// (each is at most a chunk).
constexpr int kFramesAheadMax = 4;

grpc::ByteBuffer Encode(OutgoingFrame frame) {
  if (frame.data == nullptr) return MakeFrame(frame.header);
  const absl::string_view bytes(reinterpret_cast<const char*>(frame.data), frame.size_bytes);
  return MakeFrame(frame.header, LendSlice(bytes, [owner = std::move(frame.owner)] {}));
}

// Tasks hold a share of the reactor, since a read may end after Finish(). All
// fields but those of reading belong to the executor.
class SessionStream final : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                            public std::enable_shared_from_this<SessionStream> {
 public:
  SessionStream(std::shared_ptr<Call> call, SessionTable& sessions)
      : call_(std::move(call)), sessions_(sessions) {}

  // gRPC's share; OnDone() gives it up.
  void HoldSelf() { self_ = shared_from_this(); }

  void Refuse() { Finish(call_->Close(call_->admission())); }

  void Attach() {
    stream_ = sessions_.AddStream(call_->principal(), [this] { PostPump(); });
    call_->OnCancel([this] { BreakOff(); });
    StartRead(&incoming_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      Post([this] {
        read_ended_ = true;
        Pump();
      });
      return;
    }
    auto frame = std::make_shared<const FrameAhead>(shared_from_this(),
                                                    Split<v1::ClientFrame>(incoming_));
    Post([this, frame = std::move(frame)] { Receive(frame); });
    // Last: once this frame counts, an earlier one that goes may start the next
    // read, which writes to incoming_ and whose frame must be posted behind this.
    if (++frames_ahead_ < kFramesAheadMax) StartRead(&incoming_);
  }

  void OnWriteDone(bool ok) override {
    Post([this, ok] {
      writing_ = false;
      if (!ok) return BreakOff();
      Pump();
    });
  }

  void OnCancel() override { call_->PostCancel(); }

  void OnDone() override { std::shared_ptr<SessionStream> last = std::move(self_); }

 private:
  // A frame that was read. Whoever needs its bytes shares it.
  class FrameAhead {
   public:
    FrameAhead(std::shared_ptr<SessionStream> stream, absl::StatusOr<ClientFrame> frame)
        : stream_(std::move(stream)), frame_(std::move(frame)) {}
    FrameAhead(const FrameAhead&) = delete;
    ~FrameAhead() { stream_->OnFrameGone(); }

    const absl::StatusOr<ClientFrame>& frame() const { return frame_; }

   private:
    const std::shared_ptr<SessionStream> stream_;
    const absl::StatusOr<ClientFrame> frame_;
  };

  // Any thread. Reading stopped when the last place was taken, and goes on now
  // that it is free.
  void OnFrameGone() {
    if (frames_ahead_-- < kFramesAheadMax) return;
    Post([this] {
      if (stream_) StartRead(&incoming_);
    });
  }

  template <typename Action>
  void Post(Action action) {
    call_->executor().Post([self = shared_from_this(), action = std::move(action)] { action(); });
  }

  // From within the table, which must not be called back.
  void PostPump() {
    if (std::exchange(pump_posted_, true)) return;
    Post([this] {
      pump_posted_ = false;
      Pump();
    });
  }

  void Receive(const std::shared_ptr<const FrameAhead>& ahead) {
    if (!stream_) return;
    const absl::StatusOr<ClientFrame>& frame = ahead->frame();
    if (!frame.ok()) return EndWith(frame.status());
    std::vector<absl::Span<const std::byte>> data;
    for (const grpc::Slice& slice : frame->data) {
      data.emplace_back(reinterpret_cast<const std::byte*>(slice.begin()), slice.size());
    }
    sessions_.OnFrame(*stream_, frame->header, data, ahead);
  }

  // Writes what may go out; ends the call when nothing will.
  void Pump() {
    if (writing_ || finished_) return;
    if (after_write_) return Write(*std::exchange(after_write_, std::nullopt));
    std::optional<OutgoingFrame> frame;
    if (stream_) frame = sessions_.NextFrame(*stream_);
    if (frame) {
      if (frame->last) {
        Detach();
        why_ = StatusFromProto(frame->header.ended().status());
      }
      Write(Encode(*std::move(frame)));
    } else if (!stream_ || read_ended_) {
      End();
    }
  }

  // The client sent what is no frame: the table never sees it.
  void EndWith(const absl::Status& why) {
    Detach();
    why_ = why;
    v1::ServerFrame ended;
    *ended.mutable_ended()->mutable_status() = StatusToProto(why);
    after_write_ = MakeFrame(ended);
    Pump();
  }

  void BreakOff() {
    Detach();
    why_ = Error(Reason::kCancelled, "the client's stream broke; its session stays");
    after_write_.reset();
    if (!writing_) End();
  }

  // A copy of a ByteBuffer shares its slices.
  void Write(const grpc::ByteBuffer& frame) {
    writing_ = true;
    outgoing_ = frame;
    StartWrite(&outgoing_);
  }

  void Detach() {
    if (stream_) sessions_.RemoveStream(*std::exchange(stream_, std::nullopt));
  }

  void End() {
    if (std::exchange(finished_, true)) return;
    Detach();
    call_->Close(why_);
    Finish(grpc::Status::OK);
  }

  const std::shared_ptr<Call> call_;
  SessionTable& sessions_;
  std::shared_ptr<SessionStream> self_;
  grpc::ByteBuffer incoming_;  // being read
  std::atomic<int> frames_ahead_ = 0;  // read, counted, and still needed
  grpc::ByteBuffer outgoing_;  // being written
  std::optional<StreamId> stream_;  // while it is attached to the table
  std::optional<grpc::ByteBuffer> after_write_;
  absl::Status why_;
  bool writing_ = false;
  bool read_ended_ = false;
  bool pump_posted_ = false;
  bool finished_ = false;
};

}  // namespace

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* StartSessionStream(
    const RpcEnvironment& environment, grpc::CallbackServerContext& context,
    SessionTable& sessions) {
  std::shared_ptr<Call> call =
      Call::Begin(environment, context, CallKind::kStream, "Sessions.Stream");
  auto stream = std::make_shared<SessionStream>(call, sessions);
  stream->HoldSelf();
  if (call->admission().ok()) {
    call->executor().Post([stream] { stream->Attach(); });
  } else {
    stream->Refuse();
  }
  return stream.get();
}

}  // namespace planewise
