#ifndef PLANEWISE_SERVICE_RPC_SERVER_SERVICE_H_
#define PLANEWISE_SERVICE_RPC_SERVER_SERVICE_H_
// planewise.v1.Server: what the daemon is and can do. Answered also while it
// starts or drains.
//
// Not here: gathering the facts (service/server.cc).

#include <memory>

#include "core/tensor/memory_budget.h"
#include "planewise/v1/server.grpc.pb.h"
#include "service/rpc/call.h"

namespace planewise {

class ServerService final : public v1::Server::CallbackService {
 public:
  // `capabilities` as they are at start-up; what changes (memory in use) is
  // filled in from `budget` at each call.
  ServerService(const RpcEnvironment& environment, v1::Capabilities capabilities,
                v1::ServerConfig config, std::shared_ptr<const MemoryBudget> budget);

  grpc::ServerUnaryReactor* GetCapabilities(grpc::CallbackServerContext* context,
                                            const v1::GetCapabilitiesRequest* request,
                                            v1::Capabilities* response) override;
  grpc::ServerUnaryReactor* GetServerConfig(grpc::CallbackServerContext* context,
                                            const v1::GetServerConfigRequest* request,
                                            v1::ServerConfig* response) override;

 private:
  const RpcEnvironment environment_;
  const v1::Capabilities capabilities_;
  const v1::ServerConfig config_;
  const std::shared_ptr<const MemoryBudget> budget_;
};

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_RPC_SERVER_SERVICE_H_
