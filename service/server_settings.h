#ifndef PLANEWISE_SERVICE_SERVER_SETTINGS_H_
#define PLANEWISE_SERVICE_SERVER_SETTINGS_H_
// The one list of the daemon's settings: name, help, how a text becomes a value
// and a value a text. Flags, environment, file and GetServerConfig go by it.
//
// Not here: where the texts come from (server_options.cc).

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "service/server_options.h"

namespace planewise {

struct ServerSetting {
  absl::string_view name;   // of the flag, without dashes
  absl::string_view value;  // what the value is, for --help
  absl::string_view help;
  bool repeatable = false;
  // `texts` has one element unless repeatable. INVALID_ARGUMENT and others.
  absl::Status (*apply)(const std::vector<std::string>& texts, ServerOptions& options) = nullptr;
  std::string (*show)(const ServerOptions& options) = nullptr;
};

absl::Span<const ServerSetting> ServerSettings();

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_SERVER_SETTINGS_H_
