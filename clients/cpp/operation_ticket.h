#ifndef PLANEWISE_CLIENTS_CPP_OPERATION_TICKET_H_
#define PLANEWISE_CLIENTS_CPP_OPERATION_TICKET_H_
// What the caller of an operation holds while it runs: waits for the end and
// gives the result.
//
// Not here: who brings the result (client_session.h).

#include <memory>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "planewise/v1/session.pb.h"

namespace planewise {

// Thread-safe. Copies are the same ticket.
class OperationTicket {
 public:
  // An operation in flight. It is done when its result is set and nobody holds it any
  // more: whoever uses the caller's memory holds one of its copies.
  class Flight {
   public:
    Flight() : state_(std::make_shared<State>()) {}
    ~Flight();
    Flight(const Flight&) = delete;
    Flight& operator=(const Flight&) = delete;

    void SetResult(absl::StatusOr<v1::OperationResult> result);
    OperationTicket ticket() const { return OperationTicket(state_); }

   private:
    friend class OperationTicket;
    struct State {
      Mutex mutex;
      CondVar changed;
      bool done ABSL_GUARDED_BY(mutex) = false;
      std::optional<absl::StatusOr<v1::OperationResult>> result ABSL_GUARDED_BY(mutex);
    };
    const std::shared_ptr<State> state_;
  };

  // Waits until the operation is done and its memory is the caller's again, or until
  // `timeout` has passed; true if it is done.
  bool Wait(absl::Duration timeout = absl::InfiniteDuration()) const;

  // Waits, and gives the result.
  absl::StatusOr<v1::OperationResult> result() const;

 private:
  explicit OperationTicket(std::shared_ptr<Flight::State> state) : state_(std::move(state)) {}

  std::shared_ptr<Flight::State> state_;
};

}  // namespace planewise

#endif  // PLANEWISE_CLIENTS_CPP_OPERATION_TICKET_H_
