#include "tests/bench/session_host.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "absl/time/time.h"
#include "core/base/post_and_wait.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"
#include "proto/version/api_version.h"
#include "service/auth/auth_token.h"

namespace planewise {
namespace {

v1::Capabilities Describe(const SessionLimits& limits) {
  v1::Capabilities capabilities;
  capabilities.set_api_version(std::string(kApiVersion));
  capabilities.set_chunk_bytes(limits.chunk_bytes_max);
  return capabilities;
}

}  // namespace

SessionHost::SessionHost(const std::string& address, const SessionLimits& limits, int64_t out,
                         int64_t in)
    : limits_(limits),
      sessions_({&*executor_, &SystemClock(), &runner_, &models_, &linear_, budget_}, limits,
                [this] { return random_++; }),
      gate_(AuthToken("bench"), geteuid()),
      server_service_(environment_, Describe(limits), {}, budget_) {
  executor_->Post([this, out, in] { models_.Publish(MakeHollowVersion("m", "l", out, in)); });
  gate_.Enter(ServingPhase::kServing);
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port_);
  builder.RegisterService(&sessions_service_);
  builder.RegisterService(&server_service_);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) {
    std::fprintf(stderr, "cannot listen on %s\n", address.c_str());
    std::exit(1);
  }
}

SessionHost::~SessionHost() {
  server_->Shutdown();
  runner_.Stop();
  PostAndWait(*executor_, [this] { sessions_.Shutdown(); });
  executor_.reset();
}

}  // namespace planewise
