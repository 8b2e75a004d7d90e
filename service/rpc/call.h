#ifndef PLANEWISE_SERVICE_RPC_CALL_H_
#define PLANEWISE_SERVICE_RPC_CALL_H_
// What every call has, whatever its kind: admission, a request id, a deadline's
// or client's cancellation, and one line in the log when it ends.
//
// gRPC runs reactions on threads of its own; logic runs on the executor. A
// reactor lives until its Finish() was called and gRPC is done with it, so
// executor tasks may use it until they call Finish() and not after. What may
// come later (a cancellation) goes through the Call, which is shared.
//
// Not here: the kinds of call (unary_call.h, progress_stream.h, ...).

#include <atomic>
#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/executor.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/status.h"
#include "service/auth/principal.h"
#include "service/rpc/call_gate.h"

namespace planewise {

// A call that has ended, for the log.
struct CallRecord {
  std::string method;      // for example "Models.GetModel"
  std::string request_id;  // the client's, or one made here
  std::string trace_parent;  // W3C traceparent of the client; may be empty
  Principal principal;       // empty name: not admitted
  std::string peer;
  absl::Status status;
  absl::Duration duration;
};

// Thread-safe.
class CallLog {
 public:
  virtual ~CallLog() = default;
  virtual void Ended(const CallRecord& record) = 0;
};

// All outlive every call.
struct RpcEnvironment {
  Executor* executor = nullptr;
  const Clock* clock = nullptr;
  const CallGate* gate = nullptr;
  CallLog* log = nullptr;
  // Calls that have begun and not ended, streams of sessions apart: what a
  // drain waits for.
  std::atomic<int>* open_calls = nullptr;
};

// Request metadata that names the request; the answer's metadata repeats it.
inline constexpr char kRequestIdKey[] = "x-request-id";

class Call : public std::enable_shared_from_this<Call> {
 public:
  // On gRPC's thread, first thing. Reads the metadata and asks the gate.
  // `context` lives as long as the reactor.
  static std::shared_ptr<Call> Begin(const RpcEnvironment& environment,
                                     grpc::CallbackServerContext& context, CallKind kind,
                                     absl::string_view method);

  // OK if the call was admitted; else the reactor finishes with Close(admission()).
  const absl::Status& admission() const { return admission_; }
  const Principal& principal() const { return record_.principal; }

  // Writes the log line and gives the status to finish with. Once.
  grpc::Status Close(const absl::Status& status);

  // Executor only. `react` runs there if the client goes away or its deadline
  // passes before Close(); at once if it has already. Replaces the one before.
  void OnCancel(absl::AnyInvocable<void() &&> react);

  // From the reactor's OnCancel, on gRPC's thread.
  void PostCancel();

  Executor& executor() const { return *environment_.executor; }

 private:
  Call(const RpcEnvironment& environment, grpc::CallbackServerContext& context, CallKind kind,
       absl::string_view method);

  const RpcEnvironment environment_;
  const CallKind kind_;
  CallRecord record_;
  absl::Time started_;
  absl::Status admission_;
  // Executor only.
  absl::AnyInvocable<void() &&> on_cancel_;
  bool cancelled_ = false;
  bool closed_ = false;
};

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_RPC_CALL_H_
