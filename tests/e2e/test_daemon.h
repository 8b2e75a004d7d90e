#ifndef PLANEWISE_TESTS_E2E_TEST_DAEMON_H_
#define PLANEWISE_TESTS_E2E_TEST_DAEMON_H_
// The whole daemon in the test's process, on a Unix socket and a TCP port of its
// own, with a source root and a store that go with it.
//
// Not here: the daemon as a process of its own (daemon_process.h).

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "clients/cpp/client.h"
#include "core/numeric/dtype.h"
#include "planewise/v1/models.pb.h"
#include "service/json_log.h"
#include "service/server.h"
#include "service/server_options.h"
#include "tests/testing/scratch_directory.h"
#include "tests/testing/socket_directory.h"

namespace planewise {

class TestDaemon {
 public:
  using Change = std::function<void(ServerOptions& options)>;

  // Starts it; ends the test's process if it does not start. `change` may alter
  // the settings first.
  explicit TestDaemon(const Change& change = nullptr);
  ~TestDaemon();

  // Below it models may be read from.
  const std::string& root() const { return root_.path(); }
  const Server& server() const { return *server_; }
  Server& server() { return *server_; }
  std::string socket_address() const { return sockets_.Address(); }
  std::string tcp_address() const;
  // The token that TCP needs.
  std::string token() const;

  // A client on the Unix socket that has connected; one that does not retry.
  std::unique_ptr<Client> Connect() const;

  // Writes a tiny BERT to NAME below the root and gives its path.
  std::string WriteModel(const std::string& name, uint64_t seed = 1,
                         DType dtype = DType::kF32) const;

 private:
  SocketDirectory sockets_;
  ScratchDirectory root_;
  ScratchDirectory state_;
  JsonLog log_;
  std::unique_ptr<Server> server_;
};

// A client's options for `target` that give up at the first failure.
Client::Options WithoutRetries(const std::string& target, const std::string& token = "");

// A request for model `name` from `path` in MXFP8 with `backward_override`.
v1::CreateModelRequest CreateRequest(const std::string& name, const std::string& path,
                                     v1::BackwardOverride backward_override);

// The layer of the tiny BERT that tests compute with: [128, 64], with bias.
inline constexpr char kLayer[] = "encoder.layer.0.intermediate.dense";
inline constexpr int64_t kLayerIn = 64;
inline constexpr int64_t kLayerOut = 128;

}  // namespace planewise

#endif  // PLANEWISE_TESTS_E2E_TEST_DAEMON_H_
