#include "service/auth/access_rules.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/error.h"

namespace planewise {
namespace {

// What to do about it, in every refusal.
constexpr absl::string_view kRemedy =
    "send the metadata \"authorization: Bearer TOKEN\" with the token from the daemon's "
    "--token-file, or connect over its Unix socket";

Error Refused(absl::string_view peer, absl::string_view why) {
  return Error(Reason::kUnauthenticated, absl::StrCat("call from ", peer, ": ", why, "; ", kRemedy))
      .With("peer", peer);
}

}  // namespace

absl::StatusOr<Principal> IdentifyCaller(const CallerFacts& caller, const AuthToken* token,
                                         unsigned user_id) {
  if (absl::StartsWith(caller.peer, "unix:")) return Principal{absl::StrCat("unix:", user_id)};
  if (!absl::StartsWith(caller.peer, "ipv4:") && !absl::StartsWith(caller.peer, "ipv6:")) {
    return Refused(caller.peer, "not a transport that the daemon serves");
  }
  if (token == nullptr) return Refused(caller.peer, "the daemon takes no calls over TCP");
  if (!caller.authorization) return Refused(caller.peer, "no token");
  // RFC 7235: the scheme's name has no case.
  absl::string_view presented = *caller.authorization;
  constexpr absl::string_view kScheme = "bearer ";
  if (!absl::StartsWithIgnoreCase(presented, kScheme)) {
    return Refused(caller.peer, "the authorization is not a bearer token");
  }
  presented.remove_prefix(kScheme.size());
  if (!token->Matches(presented)) return Refused(caller.peer, "the token is not the daemon's");
  return Principal{"token"};
}

}  // namespace planewise
