// planewised: parses settings, serves until SIGTERM or SIGINT, drains, exits.
// A second signal ends it at once.
#include <signal.h>
#include <sys/stat.h>

#include <iostream>
#include <memory>

#include "core/base/clock.h"
#include "service/json_log.h"
#include "service/server.h"
#include "service/server_options.h"

namespace planewise {
namespace {

// Blocked before any thread starts, so that only sigwait() gets them.
sigset_t BlockStopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

int Run(const ServerOptions& options) {
  // Sockets, tokens and stored weights are the daemon's user's alone.
  umask(S_IRWXG | S_IRWXO);
  signal(SIGPIPE, SIG_IGN);
  const sigset_t stop_signals = BlockStopSignals();
  JsonLog log(StderrSink(), options.log_level, SystemClock());
  absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(options, log);
  if (!server.ok()) {
    std::cerr << "planewised: " << server.status().message() << std::endl;
    return 1;
  }
  std::cout << (*server)->ReadyLine() << std::endl;
  int signal_number = 0;
  sigwait(&stop_signals, &signal_number);
  pthread_sigmask(SIG_UNBLOCK, &stop_signals, nullptr);
  (*server)->Drain();
  return 0;
}

}  // namespace
}  // namespace planewise

int main(int argc, char** argv) {
  const planewise::ServerCommand command =
      planewise::ParseServerCommand(argc, argv, planewise::SystemEnvironment);
  if (command.run) return planewise::Run(*command.run);
  (command.exit_code == 0 ? std::cout : std::cerr) << command.text;
  return command.exit_code;
}
