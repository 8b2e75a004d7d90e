#ifndef PLANEWISE_SERVICE_SESSION_OPERATION_RUNNER_H_
#define PLANEWISE_SERVICE_SESSION_OPERATION_RUNNER_H_
// Executes the operations of one session, one at a time, against its steps and
// saved operands. Everything that can refuse an operation is asked before it
// runs; a failed one changes nothing.
//
// Not here: order, repeated ids, windows (session.h); the arithmetic
// (service/compute/).

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "core/tensor/host_buffer.h"
#include "planewise/v1/session.pb.h"
#include "service/compute/linear_executor.h"
#include "service/session/operand_table.h"
#include "service/session/operation_inputs.h"
#include "service/session/session_limits.h"
#include "service/session/step_table.h"
#include "service/weights/weight_lease.h"

namespace planewise {

// A result without its place in the session's byte string.
struct OperationOutcome {
  v1::OperationResult header;
  std::vector<HostBuffer> tensors;  // in the order of the result's fields
};

OperationOutcome FailedOutcome(const absl::Status& status);

// An operation that may run, and what its result will take.
struct PreparedOperation {
  using Done = absl::AnyInvocable<void(OperationOutcome) &&>;

  int64_t result_bytes = 0;
  // Runs it with its inputs. `done` runs at once or as a task on the executor;
  // never, if the runner is gone by then.
  absl::AnyInvocable<void(std::vector<HostBuffer> inputs, Done done) &&> run;
};

// One thread.
class OperationRunner : public std::enable_shared_from_this<OperationRunner> {
 public:
  // All outlive it. `owner` names the session in messages.
  OperationRunner(const SessionLimits& limits, LeaseSource& models, LinearExecutor& compute,
                  std::string owner);

  // Checks the operation as things stand, and what it would pin. Changes
  // nothing until it runs. Any status of the table of reasons.
  absl::StatusOr<PreparedOperation> Prepare(const v1::Operation& operation);

  const StepTable& steps() const { return steps_; }
  const OperandTable& operands() const { return operands_; }

 private:
  struct ForwardCall;
  struct BackwardCall;

  absl::StatusOr<PreparedOperation> PrepareForward(const v1::Forward& forward);
  absl::StatusOr<PreparedOperation> PrepareBackward(const v1::Backward& backward);
  absl::Status ResolveSaved(const v1::Backward& backward, BackwardCall& call);
  absl::Status ResolveResent(const v1::Backward& backward, BackwardCall& call);
  absl::StatusOr<PreparedOperation> PrepareEndStep(const v1::EndStep& end_step);
  absl::StatusOr<PreparedOperation> PrepareRelease(const v1::ReleaseOperands& release);

  OperationOutcome FinishForward(ForwardCall& call, absl::StatusOr<ForwardOutput> output);
  OperationOutcome FinishBackward(BackwardCall& call, absl::StatusOr<BackwardOutput> output);

  const SessionLimits& limits_;
  LeaseSource& models_;
  LinearExecutor& compute_;
  const std::string owner_;
  StepTable steps_;
  OperandTable operands_;
};

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_SESSION_OPERATION_RUNNER_H_
