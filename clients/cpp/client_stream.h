#ifndef PLANEWISE_CLIENTS_CPP_CLIENT_STREAM_H_
#define PLANEWISE_CLIENTS_CPP_CLIENT_STREAM_H_
// One gRPC stream of a session: frames to and from gRPC's buffers, one write at
// a time, tensor bytes never copied.
//
// Not here: what is sent and when (session_client.h), what comes after a stream
// that broke (client_session.h).

#include <memory>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/base/executor.h"
#include "core/base/mutex.h"
#include "grpcpp/client_context.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/client_callback.h"
#include "planewise/v1/session.pb.h"
#include "proto/frame/frame_codec.h"

namespace planewise {

// Thread-safe. Once started, it keeps itself alive until OnBroken has returned.
//
// It holds a share of its channel. gRPC joins its own threads when the last share
// goes, so that must not happen on one of them: a stream ends on an executor.
class ClientStream final : private grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                           public std::enable_shared_from_this<ClientStream> {
 public:
  // On gRPC's threads OnFrame, one at a time and in order, and OnWritten beside it;
  // after all of them OnBroken, on the executor. None is called inside Write or Cancel.
  class Events {
   public:
    virtual ~Events() = default;
    virtual void OnFrame(const ClientStream& stream, const SplitFrame<v1::ServerFrame>& frame) = 0;
    virtual void OnWritten(const ClientStream& stream) = 0;
    // OK: the daemon ended the stream in good order.
    virtual void OnBroken(const ClientStream& stream, const absl::Status& status) = 0;
  };

  // A stream on `channel`; `token`, if not empty, proves who calls. `executor` outlives
  // the stream.
  static std::shared_ptr<ClientStream> Create(std::shared_ptr<grpc::Channel> channel,
                                              absl::string_view token, Executor* executor,
                                              std::shared_ptr<Events> events);

  // Once, before all else. Events come from now on.
  void Start();

  // The next write is allowed after OnWritten. Does nothing on a broken stream.
  void Write(grpc::ByteBuffer frame);

  // Ends the stream soon, whatever its state; OnBroken follows.
  void Cancel();

 private:
  ClientStream(std::shared_ptr<grpc::Channel> channel, Executor* executor,
               std::shared_ptr<Events> events);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;
  // Lets OnDone come once no write can begin any more.
  void RemoveHoldIfIdle();

  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  Executor* const executor_;
  const std::shared_ptr<Events> events_;
  std::shared_ptr<ClientStream> self_;  // from Start until OnDone

  grpc::ByteBuffer received_;
  absl::Status bad_frame_;  // why the stream was cancelled, if a frame made no sense
  grpc::ByteBuffer written_;

  Mutex mutex_;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool held_ ABSL_GUARDED_BY(mutex_) = true;
};

}  // namespace planewise

#endif  // PLANEWISE_CLIENTS_CPP_CLIENT_STREAM_H_
