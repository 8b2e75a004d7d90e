#ifndef PLANEWISE_SERVICE_RPC_HEALTH_REPORTER_H_
#define PLANEWISE_SERVICE_RPC_HEALTH_REPORTER_H_
// grpc.health.v1: one entry for the server as a whole (""), one per service,
// and one per model, "models/NAME". All are NOT_SERVING until the daemon serves
// and once it drains; a model also while it loads, if it is damaged, and after
// it is deleted.
//
// Not here: answering health calls, which gRPC's own service does.

#include <map>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "grpcpp/health_check_service_interface.h"
#include "service/rpc/call_gate.h"
#include "service/weights/catalog_requests.h"

namespace planewise {

// Entry of a model.
std::string HealthNameOfModel(absl::string_view model);

// One thread: the executor.
class HealthReporter {
 public:
  // `service` outlives it.
  explicit HealthReporter(grpc::HealthCheckServiceInterface& service);

  void OnPhase(ServingPhase phase);
  // nullopt: the model is gone.
  void OnModel(const std::string& model, std::optional<ModelState> state);

 private:
  void Report(const std::string& name, bool serving);

  grpc::HealthCheckServiceInterface& service_;
  ServingPhase phase_ = ServingPhase::kStarting;
  std::map<std::string, bool> models_;  // does it serve, but for the phase
};

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_RPC_HEALTH_REPORTER_H_
