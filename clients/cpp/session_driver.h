#ifndef PLANEWISE_CLIENTS_CPP_SESSION_DRIVER_H_
#define PLANEWISE_CLIENTS_CPP_SESSION_DRIVER_H_
// Drives a SessionClient with real streams, threads and time.
//
// Any thread may bring an event: it is applied under the lock, and then one
// thread at a time does what the state machine wants done, outside the lock:
// gRPC may run callbacks that come back here.
//
// Not here: the protocol (session_client.h), what trainers call (client_session.h).

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/random/random.h"
#include "clients/cpp/client_stream.h"
#include "clients/cpp/operation_ticket.h"
#include "clients/cpp/session_client.h"
#include "core/base/clock.h"
#include "core/base/executor.h"
#include "core/base/mutex.h"
#include "core/base/strong_int.h"
#include "planewise/v1/session.pb.h"
#include "proto/frame/frame_codec.h"

namespace planewise {

// Thread-safe.
class SessionDriver final : public ClientStream::Events,
                            public std::enable_shared_from_this<SessionDriver> {
 public:
  SessionDriver(std::shared_ptr<grpc::Channel> channel, std::string token, Executor* timers,
                SessionClient::Options options);

  // Begins the first stream and waits until the session exists; why not, if it cannot.
  absl::Status Open();

  absl::StatusOr<OperationTicket> Start(v1::Operation operation,
                                        std::vector<absl::string_view> inputs,
                                        std::vector<absl::Span<char>> outputs);
  void Close();
  // After Close: waits until no stream is left and nothing uses the callers' memory.
  void AwaitEnd();
  // Waits for `delay`, or until the session ends: false.
  bool Pause(absl::Duration delay);

  uint64_t session_id() const;
  int64_t reconnect_count() const;

  void OnFrame(const ClientStream& stream, const SplitFrame<v1::ServerFrame>& frame) override;
  void OnWritten(const ClientStream& stream) override;
  void OnBroken(const ClientStream& stream, const absl::Status& status) override;

 private:
  using Flight = OperationTicket::Flight;

  // What the state machine wants done outside the lock.
  struct Cancel {
    std::shared_ptr<ClientStream> stream;
  };
  struct Begin {};
  struct Write {
    std::shared_ptr<ClientStream> stream;
    SessionClient::OutgoingFrame frame;
    std::shared_ptr<Flight> lender;
  };
  using Action = std::variant<std::monostate, Cancel, Begin, Write>;

  void Drive();
  Action NextAction() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void BeginStream();
  static void WriteFrame(Write write);
  void Complete() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SetTimer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnTimer(absl::Time due);

  const std::shared_ptr<grpc::Channel> channel_;
  const std::string token_;
  Executor* const timers_;
  const Clock& clock_ = SystemClock();

  mutable Mutex mutex_;
  CondVar changed_;
  absl::BitGen random_ ABSL_GUARDED_BY(mutex_);
  SessionClient client_ ABSL_GUARDED_BY(mutex_);
  bool driving_ ABSL_GUARDED_BY(mutex_) = false;                  // some thread is in Drive()
  std::shared_ptr<ClientStream> stream_ ABSL_GUARDED_BY(mutex_);  // the one in use
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  int streams_alive_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time timer_due_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  absl::flat_hash_map<OperationId, std::shared_ptr<Flight>> flights_ ABSL_GUARDED_BY(mutex_);
  // Operations with a result whose inputs may still be lent to gRPC.
  std::vector<OperationTicket> landing_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace planewise

#endif  // PLANEWISE_CLIENTS_CPP_SESSION_DRIVER_H_
