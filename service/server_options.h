#ifndef PLANEWISE_SERVICE_SERVER_OPTIONS_H_
#define PLANEWISE_SERVICE_SERVER_OPTIONS_H_
// The daemon's settings: from flags, else environment variables, else a
// configuration file, else defaults; checked before anything starts.
//
// Not here: what the settings do (server.h).

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "service/listen_address.h"
#include "service/session/session_limits.h"
#include "service/weights/catalog_options.h"

namespace planewise {

struct ServerOptions {
  std::vector<ListenAddress> listen;  // at least one
  std::string token_file;             // needed with a TCP address
  std::string port_file;              // where to write the TCP port; may be empty
  std::string store;                  // empty: versions last as long as the process
  std::vector<std::string> roots;     // where models may be read from
  int64_t memory_limit_bytes = 0;
  int threads = 1;                    // of compute
  SessionLimits session;
  CatalogLimits catalog;
  absl::Duration drain_grace = absl::Seconds(10);
  std::string log_level = "info";  // debug, info, warn, error

  bool has_tcp() const;

  // Every setting by the name of its flag, as it is in effect. There are no
  // secrets among them: the token is in a file.
  std::map<std::string, std::string> Settings() const;
};

// Reads an environment variable; nullopt if it is not set.
using EnvironmentReader = std::optional<std::string> (*)(const std::string& name);
std::optional<std::string> SystemEnvironment(const std::string& name);

// What the command line asks for: to run, or to print something and exit.
struct ServerCommand {
  std::optional<ServerOptions> run;
  std::string text;   // to print if not
  int exit_code = 0;  // 0 for --help, --version, --validate-config; 2 for a mistake
};

ServerCommand ParseServerCommand(int argc, const char* const* argv, EnvironmentReader environment);

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_SERVER_OPTIONS_H_
