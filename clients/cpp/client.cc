#include "clients/cpp/client.h"

#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

#include "absl/random/random.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "clients/cpp/daemon_channel.h"
#include "clients/cpp/session_client.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/impl/codegen/proto_utils.h"
#include "proto/address/default_address.h"
#include "proto/frame/frame_codec.h"
#include "proto/status/grpc_status.h"
#include "proto/version/api_version.h"

namespace planewise {
namespace {

constexpr char kReadWeights[] = "/planewise.v1.Models/ReadWeights";

std::string Environment(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

// A daemon that made this call's effect already knows it by its request id.
std::string NewRequestId() {
  absl::BitGen random;
  return absl::StrFormat("%016x%016x", absl::Uniform<uint64_t>(random),
                         absl::Uniform<uint64_t>(random));
}

template <typename Request>
Request WithRequestId(Request request) {
  if (request.request_id().empty()) request.set_request_id(NewRequestId());
  return request;
}

int MinorOf(absl::string_view version) {
  const std::vector<absl::string_view> parts = absl::StrSplit(version, '.');
  int minor = 0;
  if (parts.size() == 2 && absl::SimpleAtoi(parts[1], &minor)) return minor;
  return 0;
}

// gRPC's own message, of a call that never reached the daemon, says what the
// socket did, not what to do about it.
absl::Status CallStatus(const grpc::Status& status, const std::string& target) {
  if (status.error_code() != grpc::StatusCode::UNAVAILABLE || !status.error_details().empty()) {
    return StatusFromGrpc(status);
  }
  return Error(Reason::kUnavailable,
               absl::StrCat("daemon at ", target, ": cannot be reached: ", status.error_message(),
                            "; start planewised, or name the address it listens on"))
      .With("target", target);
}

// Not so long that a caller who wants to leave is kept.
constexpr absl::Duration kGiveUpTimeout = absl::Seconds(10);

// Calls that change something name themselves by a request id.
template <typename Request>
constexpr bool kChanges = requires(const Request& request) {
  request.request_id();
};

// Of a call that was given up. `answered`: the daemon ended it.
absl::Status GivenUp(bool answered) {
  return Error(Reason::kCancelled,
               answered ? "the caller gave the call up before it was done"
                        : "the caller gave the call up, and the daemon did not say whether it was "
                          "done: look what is there");
}

// One server-streaming call whose messages are split without a copy. gRPC offers
// that to generic calls in this form only.
class ReadWeightsCall {
 public:
  ReadWeightsCall(const std::shared_ptr<grpc::Channel>& channel, grpc::ClientContext& context)
      : context_(context),
        stub_(channel),
        stream_(stub_.PrepareCall(&context, kReadWeights, &queue_)) {}

  // `status` is the call's; returns why the messages are not what they should be.
  absl::Status Run(const v1::ReadWeightsRequest& request, WeightDownload& download,
                   grpc::Status& status) {
    grpc::ByteBuffer encoded;
    bool own = false;
    grpc::SerializationTraits<v1::ReadWeightsRequest>::Serialize(request, &encoded, &own);
    stream_->StartCall(this);
    bool ok = Next();
    if (ok) {
      stream_->WriteLast(encoded, grpc::WriteOptions(), this);
      ok = Next();
    }
    absl::Status received;
    while (ok && received.ok()) {
      grpc::ByteBuffer message;
      stream_->Read(&message, this);
      ok = Next();
      if (ok) received = OnMessage(message, download);
    }
    if (!received.ok()) context_.TryCancel();
    stream_->Finish(&status, this);
    Next();
    return received.ok() && status.ok() ? download.OnEnd() : received;
  }

 private:
  bool Next() {
    void* tag = nullptr;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }

  static absl::Status OnMessage(const grpc::ByteBuffer& message, WeightDownload& download) {
    PW_ASSIGN_OR_RETURN(const auto split, Split<v1::ReadWeightsResponse>(message));
    std::vector<absl::string_view> data;
    for (const grpc::Slice& slice : split.data) {
      data.emplace_back(reinterpret_cast<const char*>(slice.begin()), slice.size());
    }
    return download.OnMessage(split.header, data);
  }

  grpc::ClientContext& context_;
  grpc::GenericStub stub_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
};

}  // namespace

Client::Options Client::DefaultOptions() {
  Options options;
  options.target = Environment("PLANEWISE_TARGET");
  if (options.target.empty()) options.target = DefaultAddress();
  options.token = Environment("PLANEWISE_TOKEN");
  return options;
}

Client::Client(Options options)
    : options_(std::move(options)),
      channel_(OpenDaemonChannel(options_.target)),
      server_(v1::Server::NewStub(channel_)),
      models_(v1::Models::NewStub(channel_)) {}

Client::~Client() = default;

absl::StatusOr<std::unique_ptr<Client>> Client::Connect(Options options) {
  std::unique_ptr<Client> client(new Client(std::move(options)));
  PW_RETURN_IF_ERROR(client->Handshake());
  return client;
}

absl::Status Client::Handshake() {
  PW_ASSIGN_OR_RETURN(capabilities_, GetCapabilities());
  PW_RETURN_IF_ERROR(CheckApiVersions(kApiVersion, capabilities_.api_version()));
  if (MinorOf(capabilities_.api_version()) < MinorOf(kApiVersion)) {
    version_warning_ = absl::StrCat("daemon at ", target(), " has API ",
                                    capabilities_.api_version(), ", this client ", kApiVersion,
                                    ": it ignores what is newer; upgrade the daemon to use that");
  }
  return absl::OkStatus();
}

absl::Status Client::Retry(const CallOptions& options,
                           absl::FunctionRef<absl::Status(grpc::ClientContext& context)> attempt) {
  const absl::Time deadline = SystemClock().Now() + options.timeout;
  absl::Time first_failure;
  absl::BitGen random;
  for (int attempts = 1;; ++attempts) {
    grpc::ClientContext context;
    if (!options_.token.empty()) {
      context.AddMetadata("authorization", absl::StrCat("Bearer ", options_.token));
    }
    const absl::Duration left = deadline - SystemClock().Now();
    if (left < absl::InfiniteDuration()) {
      context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(left));
    }
    const absl::Status status = attempt(context);
    if (status.ok()) return status;
    const absl::Time now = SystemClock().Now();
    if (attempts == 1) first_failure = now;
    const std::optional<absl::Duration> delay = RetryDelay(
        options_.retry, status, attempts, now - first_failure, absl::Uniform(random, 0.0, 1.0));
    if (!delay || now + *delay >= deadline) return status;
    absl::SleepFor(*delay);
  }
}

template <typename Response, typename Request, typename Stub>
absl::StatusOr<Response> Client::Unary(Stub& stub,
                                       grpc::Status (Stub::*method)(grpc::ClientContext*,
                                                                    const Request&, Response*),
                                       const Request& request, const CallOptions& options) {
  Response response;
  PW_RETURN_IF_ERROR(Retry(options, [&](grpc::ClientContext& context) {
    return CallStatus((stub.*method)(&context, request, &response), target());
  }));
  return response;
}

template <typename Request>
bool Client::GiveUp(const Request& request) {
  if constexpr (kChanges<Request>) {
    v1::GiveUpRequest give_up;
    give_up.set_request_id(request.request_id());
    return Unary(*models_, &v1::Models::Stub::GiveUp, give_up, {.timeout = kGiveUpTimeout}).ok();
  }
  return false;
}

template <typename Result, typename Event, typename Request>
absl::StatusOr<Result> Client::WithProgress(
    std::unique_ptr<grpc::ClientReader<Event>> (v1::Models::Stub::*method)(grpc::ClientContext*,
                                                                           const Request&),
    const Result& (Event::*result)() const, bool (Event::*has_result)() const,
    const Request& request, const CallOptions& options) {
  std::optional<Result> last;
  PW_RETURN_IF_ERROR(Retry(options, [&](grpc::ClientContext& context) -> absl::Status {
    const auto reader = (models_.get()->*method)(&context, request);
    bool given_up = false;
    Event event;
    while (reader->Read(&event)) {
      if ((event.*has_result)()) {
        last = (event.*result)();
      } else if (options.progress && !given_up && !options.progress(event.progress())) {
        given_up = true;
        // Cancelling would hide from us whether it was too late.
        if (!GiveUp(request)) context.TryCancel();
      }
    }
    const grpc::Status ended = reader->Finish();
    if (given_up && last) return absl::OkStatus();
    if (given_up && !ended.ok()) {
      return GivenUp(!kChanges<Request> || !ended.error_details().empty());
    }
    return CallStatus(ended, target());
  }));
  if (!last) {
    return Error(Reason::kInternal,
                 absl::StrCat(Request::descriptor()->name(),
                              ": the daemon ended the call without its result: report it"));
  }
  return *std::move(last);
}

absl::StatusOr<v1::Capabilities> Client::GetCapabilities(const CallOptions& options) {
  v1::GetCapabilitiesRequest request;
  request.set_client_api_version(std::string(kApiVersion));
  return Unary(*server_, &v1::Server::Stub::GetCapabilities, request, options);
}

absl::StatusOr<v1::ServerConfig> Client::GetServerConfig(const CallOptions& options) {
  return Unary(*server_, &v1::Server::Stub::GetServerConfig, v1::GetServerConfigRequest(), options);
}

absl::StatusOr<v1::Model> Client::CreateModel(v1::CreateModelRequest request,
                                              const CallOptions& options) {
  return WithProgress(&v1::Models::Stub::CreateModel, &v1::CreateModelResponse::model,
                      &v1::CreateModelResponse::has_model, WithRequestId(std::move(request)),
                      options);
}

absl::StatusOr<v1::Model> Client::GetModel(const v1::GetModelRequest& request,
                                           const CallOptions& options) {
  return Unary(*models_, &v1::Models::Stub::GetModel, request, options);
}

absl::StatusOr<v1::ListModelsResponse> Client::ListModels(const v1::ListModelsRequest& request,
                                                          const CallOptions& options) {
  return Unary(*models_, &v1::Models::Stub::ListModels, request, options);
}

absl::StatusOr<v1::DeleteModelResponse> Client::DeleteModel(v1::DeleteModelRequest request,
                                                            const CallOptions& options) {
  return Unary(*models_, &v1::Models::Stub::DeleteModel, WithRequestId(std::move(request)),
               options);
}

absl::StatusOr<v1::ValidateModeSwitchResponse> Client::ValidateModeSwitch(
    const v1::ValidateModeSwitchRequest& request, const CallOptions& options) {
  return Unary(*models_, &v1::Models::Stub::ValidateModeSwitch, request, options);
}

absl::StatusOr<v1::SwitchModeResponse> Client::SwitchMode(v1::SwitchModeRequest request,
                                                          const CallOptions& options) {
  return Unary(*models_, &v1::Models::Stub::SwitchMode, WithRequestId(std::move(request)), options);
}

absl::StatusOr<v1::SaveResult> Client::SaveModel(v1::SaveModelRequest request,
                                                 const CallOptions& options) {
  return WithProgress(&v1::Models::Stub::SaveModel, &v1::SaveModelResponse::result,
                      &v1::SaveModelResponse::has_result, WithRequestId(std::move(request)),
                      options);
}

absl::StatusOr<v1::VerifyResult> Client::VerifyModel(const v1::VerifyModelRequest& request,
                                                     const CallOptions& options) {
  return WithProgress(&v1::Models::Stub::VerifyModel, &v1::VerifyModelResponse::result,
                      &v1::VerifyModelResponse::has_result, request, options);
}

absl::Status Client::ReadWeights(const v1::ReadWeightsRequest& request, WeightSink& sink,
                                 const CallOptions& options) {
  WeightDownload download(sink);
  absl::Status outcome;
  PW_RETURN_IF_ERROR(Retry(options, [&](grpc::ClientContext& context) {
    grpc::Status status;
    outcome = ReadWeightsCall(channel_, context).Run(request, download, status);
    if (outcome.ok()) outcome = CallStatus(status, target());
    // What the sink has taken it will not take twice: such a call is not made again.
    return download.begun() ? absl::OkStatus() : outcome;
  }));
  return outcome;
}

absl::StatusOr<std::unique_ptr<ClientSession>> Client::OpenSession(const SessionOptions& options) {
  SessionClient::Options session;
  session.client_name = options_.name;
  session.client_api_version = std::string(kApiVersion);
  session.deterministic = options.deterministic;
  session.retry = options_.retry;
  // A channel, and so a connection, of its own: tensors do not delay control calls.
  return ClientSession::Open(OpenDaemonChannel(options_.target), options_.token, &timers_,
                             std::move(session));
}

}  // namespace planewise
