#ifndef PLANEWISE_CLIENTS_CPP_CLIENT_SESSION_H_
#define PLANEWISE_CLIENTS_CPP_CLIENT_SESSION_H_
// A session as trainers use it: forward, backward, steps, several operations in
// flight, through broken connections and without a thought for windows.
//
// Not here: the protocol (session_client.h), the gRPC stream (client_stream.h),
// control calls (client.h).

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "clients/cpp/operation_ticket.h"
#include "clients/cpp/retry_policy.h"
#include "clients/cpp/session_client.h"
#include "clients/cpp/session_driver.h"
#include "core/base/executor.h"
#include "grpcpp/channel.h"
#include "planewise/v1/session.pb.h"

namespace planewise {

// Thread-safe. Made by Client::OpenSession; must go before its client.
//
// Tensors are memory of the caller: inputs are sent from it (again too, after a broken
// connection) and results are written into it, so both must stay, and inputs
// unchanged, until the operation is done.
class ClientSession {
 public:
  // Opens a session on `channel`, trying as long as options.retry says. `timers` runs
  // heartbeats and time-outs and outlives the session.
  static absl::StatusOr<std::unique_ptr<ClientSession>> Open(std::shared_ptr<grpc::Channel> channel,
                                                             std::string token, Executor* timers,
                                                             SessionClient::Options options);

  // Closes the session and waits until nothing uses the callers' memory.
  ~ClientSession();

  // Begins an operation: fill in one kind, id and position are the session's. Operations
  // are executed in the order begun. INVALID_ARGUMENT for inputs whose sizes are not
  // those of their specs; else the reason the session ended for.
  absl::StatusOr<OperationTicket> Start(v1::Operation operation,
                                        std::vector<absl::string_view> inputs,
                                        std::vector<absl::Span<char>> outputs);

  // Begins one and waits. Where the daemon refuses it for now and names a delay, it is
  // begun again after that.
  absl::StatusOr<v1::OperationResult> Run(const v1::Operation& operation,
                                          const std::vector<absl::string_view>& inputs,
                                          const std::vector<absl::Span<char>>& outputs);

  // Run for one kind each. `input` is X [..., in], `output` Y [..., out].
  absl::StatusOr<v1::ForwardResult> Forward(v1::Forward request, absl::string_view input,
                                            absl::Span<char> output);
  // `inputs`: X if it is sent again, dY; `outputs`: those asked of dX, dW, dBias.
  absl::StatusOr<v1::BackwardResult> Backward(v1::Backward request,
                                              const std::vector<absl::string_view>& inputs,
                                              const std::vector<absl::Span<char>>& outputs);
  absl::Status EndStep(uint64_t step);
  absl::Status Release(absl::Span<const uint64_t> handles);

  // Ends the session: what is not done fails with CANCELLED, now and later. Does
  // not wait.
  void Close();

  uint64_t session_id() const;
  // How often the session was taken up again on another stream.
  int64_t reconnect_count() const;

 private:
  ClientSession(std::shared_ptr<SessionDriver> driver, RetryPolicy retry)
      : driver_(std::move(driver)), retry_(retry) {}

  const std::shared_ptr<SessionDriver> driver_;
  const RetryPolicy retry_;
};

}  // namespace planewise

#endif  // PLANEWISE_CLIENTS_CPP_CLIENT_SESSION_H_
