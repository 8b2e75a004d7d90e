#include "service/rpc/server_service.h"

#include <utility>

#include "proto/version/api_version.h"
#include "service/rpc/unary_call.h"

namespace planewise {

ServerService::ServerService(const RpcEnvironment& environment, v1::Capabilities capabilities,
                             v1::ServerConfig config, std::shared_ptr<const MemoryBudget> budget)
    : environment_(environment),
      capabilities_(std::move(capabilities)),
      config_(std::move(config)),
      budget_(std::move(budget)) {}

grpc::ServerUnaryReactor* ServerService::GetCapabilities(
    grpc::CallbackServerContext* context, const v1::GetCapabilitiesRequest* request,
    v1::Capabilities* response) {
  return StartUnary<v1::Capabilities>(
      environment_, *context, CallKind::kInfo, "Server.GetCapabilities", *response,
      [this, request](Call&, Reply<v1::Capabilities> reply) {
        const absl::Status versions =
            CheckApiVersions(request->client_api_version(), capabilities_.api_version());
        if (!versions.ok()) return std::move(reply)(versions);
        v1::Capabilities capabilities = capabilities_;
        capabilities.set_memory_used_bytes(budget_->used_bytes());
        std::move(reply)(std::move(capabilities));
      });
}

grpc::ServerUnaryReactor* ServerService::GetServerConfig(grpc::CallbackServerContext* context,
                                                         const v1::GetServerConfigRequest*,
                                                         v1::ServerConfig* response) {
  return StartUnary<v1::ServerConfig>(
      environment_, *context, CallKind::kInfo, "Server.GetServerConfig", *response,
      [this](Call&, Reply<v1::ServerConfig> reply) { std::move(reply)(config_); });
}

}  // namespace planewise
