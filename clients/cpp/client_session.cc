#include "clients/cpp/client_session.h"

#include <optional>

#include "absl/random/random.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"

namespace planewise {

absl::StatusOr<std::unique_ptr<ClientSession>> ClientSession::Open(
    std::shared_ptr<grpc::Channel> channel, std::string token, Executor* timers,
    SessionClient::Options options) {
  const RetryPolicy retry = options.retry;
  auto driver = std::make_shared<SessionDriver>(std::move(channel), std::move(token), timers,
                                                std::move(options));
  // Closes the session in every case, also if it could not be opened.
  std::unique_ptr<ClientSession> session(new ClientSession(driver, retry));
  PW_RETURN_IF_ERROR(driver->Open());
  return session;
}

ClientSession::~ClientSession() {
  driver_->Close();
  driver_->AwaitEnd();
}

absl::StatusOr<OperationTicket> ClientSession::Start(v1::Operation operation,
                                                     std::vector<absl::string_view> inputs,
                                                     std::vector<absl::Span<char>> outputs) {
  return driver_->Start(std::move(operation), std::move(inputs), std::move(outputs));
}

absl::StatusOr<v1::OperationResult> ClientSession::Run(
    const v1::Operation& operation, const std::vector<absl::string_view>& inputs,
    const std::vector<absl::Span<char>>& outputs) {
  absl::Time first_failure;
  absl::BitGen random;
  for (int attempt = 1;; ++attempt) {
    PW_ASSIGN_OR_RETURN(const OperationTicket ticket, Start(operation, inputs, outputs));
    absl::StatusOr<v1::OperationResult> result = ticket.result();
    if (result.ok()) return result;
    const std::optional<ErrorDetails> details = DetailsOf(result.status());
    if (!details || !details->retry_delay_ms) return result;
    const absl::Time now = SystemClock().Now();
    if (attempt == 1) first_failure = now;
    const std::optional<absl::Duration> delay = RetryDelay(
        retry_, result.status(), attempt, now - first_failure, absl::Uniform(random, 0.0, 1.0));
    if (!delay || !driver_->Pause(*delay)) return result;
  }
}

absl::StatusOr<v1::ForwardResult> ClientSession::Forward(v1::Forward request,
                                                         absl::string_view input,
                                                         absl::Span<char> output) {
  v1::Operation operation;
  *operation.mutable_forward() = std::move(request);
  PW_ASSIGN_OR_RETURN(v1::OperationResult result, Run(operation, {input}, {output}));
  return std::move(*result.mutable_forward());
}

absl::StatusOr<v1::BackwardResult> ClientSession::Backward(
    v1::Backward request, const std::vector<absl::string_view>& inputs,
    const std::vector<absl::Span<char>>& outputs) {
  v1::Operation operation;
  *operation.mutable_backward() = std::move(request);
  PW_ASSIGN_OR_RETURN(v1::OperationResult result, Run(operation, inputs, outputs));
  return std::move(*result.mutable_backward());
}

absl::Status ClientSession::EndStep(uint64_t step) {
  v1::Operation operation;
  operation.mutable_end_step()->set_step(step);
  return Run(operation, {}, {}).status();
}

absl::Status ClientSession::Release(absl::Span<const uint64_t> handles) {
  v1::Operation operation;
  *operation.mutable_release()->mutable_handles() = {handles.begin(), handles.end()};
  return Run(operation, {}, {}).status();
}

void ClientSession::Close() { driver_->Close(); }

uint64_t ClientSession::session_id() const { return driver_->session_id(); }

int64_t ClientSession::reconnect_count() const { return driver_->reconnect_count(); }

}  // namespace planewise
