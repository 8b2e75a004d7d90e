#ifndef PLANEWISE_SERVICE_AUTH_AUTH_TOKEN_H_
#define PLANEWISE_SERVICE_AUTH_AUTH_TOKEN_H_
// The secret that callers on TCP must present. It is made at the first start
// and kept in a file that only the daemon's user can read.
//
// Not here: who needs it (access_rules.h).

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace planewise {

// Immutable, so thread-safe.
class AuthToken {
 public:
  // The token in file `path`; makes the file (0600) with 256 random bits if
  // there is none. FAILED_PRECONDITION if others than the owner may read the
  // file, INVALID_ARGUMENT if it does not hold a token, UNAVAILABLE if it
  // cannot be read or written. Messages name the path and never the secret.
  static absl::StatusOr<AuthToken> LoadOrCreate(const std::string& path);

  explicit AuthToken(std::string secret) : secret_(std::move(secret)) {}

  // Takes the same time wherever the two differ.
  bool Matches(absl::string_view presented) const;

 private:
  std::string secret_;  // lowercase hexadecimal
};

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_AUTH_AUTH_TOKEN_H_
