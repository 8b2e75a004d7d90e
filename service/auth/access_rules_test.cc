#include "service/auth/access_rules.h"

#include <optional>
#include <string>

#include "core/base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const AuthToken kToken("0a1b");

struct Case {
  const char* name;
  const char* peer;
  std::optional<absl::string_view> authorization;
  const AuthToken* token;
  const char* principal;  // nullptr: refused
};

const Case kCases[] = {
    {"Unix socket needs no token", "unix:", std::nullopt, nullptr, "unix:1000"},
    {"Unix socket with its path", "unix:/run/p.sock", std::nullopt, &kToken, "unix:1000"},
    {"TCP with the token", "ipv4:127.0.0.1:5", "Bearer 0a1b", &kToken, "token"},
    {"the scheme has no case", "ipv6:[::1]:5", "bEARER 0a1b", &kToken, "token"},
    {"TCP without a token", "ipv4:127.0.0.1:5", std::nullopt, &kToken, nullptr},
    {"another token", "ipv4:127.0.0.1:5", "Bearer 0a1c", &kToken, nullptr},
    {"an empty token", "ipv4:127.0.0.1:5", "Bearer ", &kToken, nullptr},
    {"another scheme", "ipv4:127.0.0.1:5", "Basic 0a1b", &kToken, nullptr},
    {"the bare token", "ipv4:127.0.0.1:5", "0a1b", &kToken, nullptr},
    {"TCP although none is served", "ipv4:127.0.0.1:5", "Bearer 0a1b", nullptr, nullptr},
    {"a transport of no known name", "vsock:3", "Bearer 0a1b", &kToken, nullptr},
    {"a peer that only looks like a socket", "ipv4:unix:1", std::nullopt, &kToken, nullptr},
};

TEST(AccessRulesTest, EveryWayIn) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const absl::StatusOr<Principal> caller =
        IdentifyCaller({c.peer, c.authorization}, c.token, 1000);
    if (c.principal != nullptr) {
      EXPECT_THAT(caller, IsOkAndHolds(Principal{c.principal}));
    } else {
      EXPECT_THAT(caller, HasReason(Reason::kUnauthenticated,
                                    AllOf(HasSubstr(c.peer), HasSubstr("--token-file"),
                                          Not(HasSubstr("0a1")))));
    }
  }
}

}  // namespace
}  // namespace planewise
