#ifndef PLANEWISE_SERVICE_SERVER_H_
#define PLANEWISE_SERVICE_SERVER_H_
// The daemon, put together: the one place that knows all concrete types. Opens
// the store, listens, loads what the store holds, serves, drains.
//
// Not here: settings (server_options.h), signals and exit codes
// (daemon_main.cc).

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "core/tensor/memory_budget.h"
#include "service/json_log.h"
#include "service/server_options.h"

namespace planewise {

// Thread-compatible.
class Server {
 public:
  // Serves when it returns. `log` outlives the server. Fails without a trace if
  // a setting does not fit this machine: a root that is missing, a store that
  // another daemon holds, an address that is taken.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const ServerOptions& options, JsonLog& log);

  // Ends every call at once.
  ~Server();

  // Refuses new work, lets what runs end for at most drain_grace, ends sessions,
  // and stops listening. Blocks. Once.
  void Drain();

  // Where it listens, as clients connect, ports filled in; separated by ", ".
  std::string Addresses() const;
  // 0 without a TCP address.
  int tcp_port() const;
  // "planewised ready: listening on ..., 2 models, store /data".
  std::string ReadyLine() const;

  const MemoryBudget& budget() const;

 private:
  struct Parts;
  explicit Server(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_SERVER_H_
