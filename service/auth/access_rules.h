#ifndef PLANEWISE_SERVICE_AUTH_ACCESS_RULES_H_
#define PLANEWISE_SERVICE_AUTH_ACCESS_RULES_H_
// Who a caller is, from how the call came: a pure function.
//   Unix socket   the socket's permissions (0600 in a 0700 directory) let in
//                 only the daemon's own user: trusted as it
//   TCP           `authorization: Bearer TOKEN` with the daemon's token
//   anything else nobody
//
// Not here: the token (auth_token.h); gRPC's view of a call (service/rpc/).

#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "service/auth/auth_token.h"
#include "service/auth/principal.h"

namespace planewise {

struct CallerFacts {
  // As gRPC names it: "unix:", "unix:PATH", "ipv4:HOST:PORT", "ipv6:[HOST]:PORT".
  absl::string_view peer;
  // The `authorization` metadata, if the call has it exactly once.
  std::optional<absl::string_view> authorization;
};

// `token` is nullptr if the daemon does not listen on TCP; `user_id` is the one
// that the daemon runs as. UNAUTHENTICATED, saying what to present.
absl::StatusOr<Principal> IdentifyCaller(const CallerFacts& caller, const AuthToken* token,
                                         unsigned user_id);

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_AUTH_ACCESS_RULES_H_
