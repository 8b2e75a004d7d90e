#include "clients/cpp/operation_ticket.h"

#include "core/base/clock.h"

namespace planewise {

OperationTicket::Flight::~Flight() {
  MutexLock lock(state_->mutex);
  state_->done = true;
  state_->changed.NotifyAll();
}

void OperationTicket::Flight::SetResult(absl::StatusOr<v1::OperationResult> result) {
  MutexLock lock(state_->mutex);
  state_->result = std::move(result);
}

bool OperationTicket::Wait(absl::Duration timeout) const {
  MutexLock lock(state_->mutex);
  const absl::Time deadline = SystemClock().Now() + timeout;
  while (!state_->done) {
    if (timeout == absl::InfiniteDuration()) {
      state_->changed.Wait(state_->mutex);
      continue;
    }
    const absl::Duration left = deadline - SystemClock().Now();
    if (left <= absl::ZeroDuration()) return false;
    state_->changed.WaitFor(state_->mutex, absl::ToChronoNanoseconds(left));
  }
  return true;
}

absl::StatusOr<v1::OperationResult> OperationTicket::result() const {
  Wait();
  MutexLock lock(state_->mutex);
  return *state_->result;
}

}  // namespace planewise
