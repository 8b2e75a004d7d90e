#ifndef PLANEWISE_TESTS_BENCH_SESSION_HOST_H_
#define PLANEWISE_TESTS_BENCH_SESSION_HOST_H_
// The daemon's sessions on gRPC with a compute that costs nothing, so that what
// is measured is the transport: listener, frames, windows, copies.
//
// Not here: the whole daemon (service/server.h).

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/base/clock.h"
#include "core/base/serial_executor.h"
#include "core/tensor/memory_budget.h"
#include "grpcpp/server.h"
#include "service/compute/linear_executor.h"
#include "service/rpc/call.h"
#include "service/rpc/call_gate.h"
#include "service/rpc/server_service.h"
#include "service/rpc/sessions_service.h"
#include "service/schedule/thread_runner.h"
#include "service/session/session_limits.h"
#include "service/session/session_table.h"
#include "service/weights/fake_lease_source.h"
#include "tests/bench/copying_compute.h"

namespace planewise {

class SessionHost {
 public:
  // Hosts model "m" with layer "l" [out, in] on `address`.
  SessionHost(const std::string& address, const SessionLimits& limits, int64_t out, int64_t in);
  ~SessionHost();

  // 0 for a Unix socket.
  int port() const { return port_; }

 private:
  class Silence final : public CallLog {
   public:
    void Ended(const CallRecord&) override {}
  };

  const SessionLimits limits_;
  std::optional<SerialExecutor> executor_{std::in_place};
  ThreadRunner runner_{*executor_};
  std::shared_ptr<MemoryBudget> budget_ = MemoryBudget::Create(int64_t{1} << 40);
  CopyingCompute compute_;
  LinearExecutor linear_{compute_, runner_, budget_};
  FakeLeaseSource models_{SystemClock()};
  std::atomic<uint64_t> random_ = 1;
  SessionTable sessions_;
  CallGate gate_;
  Silence log_;
  std::atomic<int> open_calls_ = 0;
  RpcEnvironment environment_{&*executor_, &SystemClock(), &gate_, &log_, &open_calls_};
  SessionsService sessions_service_{environment_, sessions_};
  ServerService server_service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace planewise

#endif  // PLANEWISE_TESTS_BENCH_SESSION_HOST_H_
