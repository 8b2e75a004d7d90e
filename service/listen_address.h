#ifndef PLANEWISE_SERVICE_LISTEN_ADDRESS_H_
#define PLANEWISE_SERVICE_LISTEN_ADDRESS_H_
// Where the daemon may listen: Unix sockets, and loopback TCP with a token.
//
// Not here: listening (server.h).

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace planewise {

struct ListenAddress {
  enum class Kind { kUnix, kTcp } kind = Kind::kUnix;
  std::string path;  // kUnix: absolute
  std::string host;  // kTcp: "127.0.0.1", "localhost" or "[::1]"
  int port = 0;      // kTcp: 0 = any free one

  // As gRPC takes and --listen gives it.
  std::string ToString() const;
};

// "unix:///ABSOLUTE/PATH" or "HOST:PORT". INVALID_ARGUMENT / INVALID_REQUEST for
// another shape; UNIMPLEMENTED / NOT_SUPPORTED for a host that is not loopback:
// that needs TLS.
absl::StatusOr<ListenAddress> ParseListenAddress(absl::string_view text);

// Makes the socket's directory (0700) if it is missing and checks that only the
// daemon's user can reach it, so that nobody else can put a socket in its
// place. ALREADY_EXISTS if a daemon answers at `path` now; a socket that nobody
// answers is left for gRPC to replace. PERMISSION_DENIED, UNAVAILABLE.
absl::Status PrepareSocketDirectory(const std::string& path);

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_LISTEN_ADDRESS_H_
