#include "proto/version/api_version.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/error.h"

namespace planewise {
namespace {

// The major number of MAJOR.MINOR.
std::optional<int> MajorOf(absl::string_view version) {
  const std::vector<absl::string_view> parts = absl::StrSplit(version, '.');
  if (parts.size() != 2) return std::nullopt;
  int major = 0;
  int minor = 0;
  for (const auto& [text, number] : {std::pair{parts[0], &major}, std::pair{parts[1], &minor}}) {
    // SimpleAtoi also takes signs and blanks.
    if (!std::all_of(text.begin(), text.end(), absl::ascii_isdigit) ||
        !absl::SimpleAtoi(text, number)) {
      return std::nullopt;
    }
  }
  return major;
}

Error NotAVersion(absl::string_view field, absl::string_view observed) {
  return Error(Reason::kInvalidRequest,
               absl::StrCat(field, " \"", observed, "\" is not MAJOR.MINOR; this side is ",
                            kApiVersion))
      .With("field", field);
}

}  // namespace

absl::Status CheckApiVersions(absl::string_view client, absl::string_view server) {
  const std::optional<int> client_major = MajorOf(client);
  if (!client_major) return NotAVersion("client_api_version", client);
  const std::optional<int> server_major = MajorOf(server);
  if (!server_major) return NotAVersion("api_version", server);
  if (*client_major == *server_major) return absl::OkStatus();
  return Error(Reason::kClientTooOld,
               absl::StrCat("client speaks API ", client, ", server ", server,
                            "; both need the same major version: upgrade the ",
                            *client_major < *server_major ? "client" : "server"))
      .With("clientApiVersion", client)
      .With("serverApiVersion", server);
}

}  // namespace planewise
