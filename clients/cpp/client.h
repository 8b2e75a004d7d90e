#ifndef PLANEWISE_CLIENTS_CPP_CLIENT_H_
#define PLANEWISE_CLIENTS_CPP_CLIENT_H_
// A connection to the daemon: control calls, weights, sessions.
//
// Errors are the daemon's, with their details (core/base/error.h). A call is made
// again while the daemon cannot be reached or asks for it (retry_policy.h); calls
// that change something carry a request id, so that this changes it once.
//
// Not here: forward and backward (client_session.h), JSON (clients/c/).

#include <functional>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "clients/cpp/client_session.h"
#include "clients/cpp/retry_policy.h"
#include "clients/cpp/weight_download.h"
#include "core/base/serial_executor.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "planewise/v1/models.grpc.pb.h"
#include "planewise/v1/server.grpc.pb.h"

namespace planewise {

struct CallOptions {
  // For the whole call with its retries; DEADLINE_EXCEEDED when it has passed.
  absl::Duration timeout = absl::InfiniteDuration();
  // Called on the calling thread. False gives the call up: it ends with CANCELLED
  // and has changed nothing, or with its result if it was too late.
  std::function<bool(const v1::Progress&)> progress = nullptr;
};

struct SessionOptions {
  // False allows sums in any order, and rows need not keep their bits.
  bool deterministic = true;
};

// Thread-safe. Sessions must go before their client.
class Client {
 public:
  struct Options {
    std::string target;  // unix:///PATH or HOST:PORT
    std::string token;   // for TCP
    std::string name = "planewise";
    RetryPolicy retry;
  };

  // Target and token of PLANEWISE_TARGET and PLANEWISE_TOKEN, else the daemon's
  // default socket and no token.
  static Options DefaultOptions();

  // Connects and compares versions: FAILED_PRECONDITION / CLIENT_TOO_OLD for a daemon
  // of another major API version, UNAVAILABLE if it cannot be reached for as long as
  // options.retry says, UNAUTHENTICATED.
  static absl::StatusOr<std::unique_ptr<Client>> Connect(Options options);

  ~Client();

  // What the daemon said when it was connected to.
  const v1::Capabilities& capabilities() const { return capabilities_; }
  const std::string& target() const { return options_.target; }
  // What the user should know about the daemon's version; empty: nothing.
  const std::string& version_warning() const { return version_warning_; }

  absl::StatusOr<v1::Capabilities> GetCapabilities(const CallOptions& options = {});
  absl::StatusOr<v1::ServerConfig> GetServerConfig(const CallOptions& options = {});

  absl::StatusOr<v1::Model> CreateModel(v1::CreateModelRequest request,
                                        const CallOptions& options = {});
  absl::StatusOr<v1::Model> GetModel(const v1::GetModelRequest& request,
                                     const CallOptions& options = {});
  absl::StatusOr<v1::ListModelsResponse> ListModels(const v1::ListModelsRequest& request,
                                                    const CallOptions& options = {});
  absl::StatusOr<v1::DeleteModelResponse> DeleteModel(v1::DeleteModelRequest request,
                                                      const CallOptions& options = {});
  absl::StatusOr<v1::ValidateModeSwitchResponse> ValidateModeSwitch(
      const v1::ValidateModeSwitchRequest& request, const CallOptions& options = {});
  absl::StatusOr<v1::SwitchModeResponse> SwitchMode(v1::SwitchModeRequest request,
                                                    const CallOptions& options = {});
  absl::StatusOr<v1::SaveResult> SaveModel(v1::SaveModelRequest request,
                                           const CallOptions& options = {});
  absl::StatusOr<v1::VerifyResult> VerifyModel(const v1::VerifyModelRequest& request,
                                               const CallOptions& options = {});

  // Reads tensors into `sink`, all of one version. DATA_LOSS / CHECKSUM_MISMATCH for a
  // tensor that is not what the daemon said it would be. Not made again once a tensor
  // has begun.
  absl::Status ReadWeights(const v1::ReadWeightsRequest& request, WeightSink& sink,
                           const CallOptions& options = {});

  absl::StatusOr<std::unique_ptr<ClientSession>> OpenSession(const SessionOptions& options = {});

 private:
  explicit Client(Options options);

  absl::Status Handshake();

  // Calls `attempt` until it succeeds or RetryDelay gives up.
  absl::Status Retry(const CallOptions& options,
                     absl::FunctionRef<absl::Status(grpc::ClientContext& context)> attempt);

  // One kind of call each; `method` is a stub's.
  template <typename Response, typename Request, typename Stub>
  absl::StatusOr<Response> Unary(Stub& stub,
                                 grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                              Response*),
                                 const Request& request, const CallOptions& options);
  // Asks the daemon to give `request` up; false if it cannot be asked.
  template <typename Request>
  bool GiveUp(const Request& request);
  template <typename Result, typename Event, typename Request>
  absl::StatusOr<Result> WithProgress(
      std::unique_ptr<grpc::ClientReader<Event>> (v1::Models::Stub::*method)(grpc::ClientContext*,
                                                                             const Request&),
      const Result& (Event::*result)() const, bool (Event::*has_result)() const,
      const Request& request, const CallOptions& options);

  const Options options_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::Server::Stub> server_;
  const std::unique_ptr<v1::Models::Stub> models_;
  v1::Capabilities capabilities_;
  std::string version_warning_;
  SerialExecutor timers_;  // the sessions' heartbeats
};

}  // namespace planewise

#endif  // PLANEWISE_CLIENTS_CPP_CLIENT_H_
