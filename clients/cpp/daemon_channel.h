#ifndef PLANEWISE_CLIENTS_CPP_DAEMON_CHANNEL_H_
#define PLANEWISE_CLIENTS_CPP_DAEMON_CHANNEL_H_
// A gRPC channel to the daemon with the settings that every one of ours has.
//
// Not here: who uses it and what for (client.h, session_driver.h).

#include <memory>
#include <string>

#include "grpcpp/channel.h"

namespace planewise {

// `target` is unix:///PATH or HOST:PORT. Each channel has a connection of its own,
// so that the bulk of one delays nothing on another. Connects when first used.
std::shared_ptr<grpc::Channel> OpenDaemonChannel(const std::string& target);

}  // namespace planewise

#endif  // PLANEWISE_CLIENTS_CPP_DAEMON_CHANNEL_H_
