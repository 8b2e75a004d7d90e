#include "clients/cpp/daemon_channel.h"

#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/support/channel_arguments.h"

namespace planewise {
namespace {

// gRPC waits a second after the first failed connection and doubles from there.
// How often to try is our retry policy's to say; gRPC only must not stand in its way.
constexpr int kReconnectBackoffFirstMs = 20;
constexpr int kReconnectBackoffMaxMs = 1000;

// A peer that vanished without a word is noticed by the connection: at once while
// data is under way, else by a ping. More often than every five minutes gRPC's
// servers take for abuse.
constexpr int kKeepaliveMs = 330'000;

}  // namespace

std::shared_ptr<grpc::Channel> OpenDaemonChannel(const std::string& target) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // Chunks bound a message; a limit on top would only surprise.
  arguments.SetMaxReceiveMessageSize(-1);
  // gRPC's own retries would keep every message until the call is committed, and
  // so hold on to the callers' memory.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kReconnectBackoffFirstMs);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kReconnectBackoffMaxMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kReconnectBackoffMaxMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  // http_proxy, which many trainers' machines set, is for other traffic.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace planewise
