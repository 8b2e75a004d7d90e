#include "tests/e2e/test_daemon.h"

#include <spdlog/sinks/null_sink.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "core/base/file_system.h"
#include "core/base/posix_file_system.h"
#include "tests/testing/hf_model.h"

namespace planewise {
namespace {

std::shared_ptr<spdlog::logger> Silence() {
  return std::make_shared<spdlog::logger>("test",
                                          std::make_shared<spdlog::sinks::null_sink_mt>());
}

template <typename T>
T Must(absl::StatusOr<T> result, const char* what) {
  if (!result.ok()) {
    std::fprintf(stderr, "%s: %s\n", what, result.status().ToString().c_str());
    std::exit(1);
  }
  return *std::move(result);
}

}  // namespace

TestDaemon::TestDaemon(const Change& change) : log_(Silence(), "error", SystemClock()) {
  ServerOptions options;
  options.listen = {*ParseListenAddress(socket_address()), *ParseListenAddress("127.0.0.1:0")};
  options.token_file = JoinPath(state_.path(), "token");
  options.store = JoinPath(state_.path(), "store");
  options.roots = {root_.path()};
  options.memory_limit_bytes = int64_t{1} << 30;
  options.threads = 1;
  options.drain_grace = absl::ZeroDuration();
  if (change) change(options);
  server_ = Must(Server::Start(options, log_), "starting the daemon");
}

TestDaemon::~TestDaemon() = default;

std::string TestDaemon::tcp_address() const {
  return absl::StrCat("127.0.0.1:", server_->tcp_port());
}

std::string TestDaemon::token() const {
  std::ifstream file(JoinPath(state_.path(), "token"));
  std::string token;
  file >> token;
  return token;
}

std::unique_ptr<Client> TestDaemon::Connect() const {
  return Must(Client::Connect(WithoutRetries(socket_address())), "connecting");
}

std::string TestDaemon::WriteModel(const std::string& name, uint64_t seed, DType dtype) const {
  const std::string path = JoinPath(root(), name);
  const absl::Status written =
      WriteHfModel(PosixFileSystem(), path, kTinyBert, RandomTensors(kTinyBert, dtype, seed));
  if (!written.ok()) {
    std::fprintf(stderr, "%s\n", written.ToString().c_str());
    std::exit(1);
  }
  return path;
}

Client::Options WithoutRetries(const std::string& target, const std::string& token) {
  Client::Options options;
  options.target = target;
  options.token = token;
  options.retry.give_up_after = absl::ZeroDuration();
  return options;
}

v1::CreateModelRequest CreateRequest(const std::string& name, const std::string& path,
                                     v1::BackwardOverride backward_override) {
  v1::CreateModelRequest request;
  request.set_name(name);
  request.set_source_path(path);
  request.mutable_recipe()->set_format("mxfp8");
  request.mutable_recipe()->set_backward_override(backward_override);
  request.set_trainable(true);
  return request;
}

}  // namespace planewise
