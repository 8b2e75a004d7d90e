#include "service/server_settings.h"

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "core/base/byte_size.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"

namespace planewise {
namespace {

using Texts = std::vector<std::string>;

constexpr absl::string_view kLogLevels[] = {"debug", "info", "warn", "error"};

absl::Status SetSize(const Texts& texts, int64_t& size_bytes) {
  PW_ASSIGN_OR_RETURN(const int64_t value, ParseByteSize(texts[0]));
  if (value == 0) return Error(Reason::kInvalidRequest, "the size is 0; required: at least 1B");
  size_bytes = value;
  return absl::OkStatus();
}

absl::Status SetCount(const Texts& texts, int& count) {
  int value = 0;
  if (!absl::SimpleAtoi(texts[0], &value) || value < 1) {
    return Error(Reason::kInvalidRequest,
                 absl::StrCat("\"", texts[0], "\"; required: a whole number of at least 1"));
  }
  count = value;
  return absl::OkStatus();
}

absl::Status SetDuration(const Texts& texts, absl::Duration& duration) {
  absl::Duration value;
  if (!absl::ParseDuration(texts[0], &value) || value < absl::ZeroDuration() ||
      value == absl::InfiniteDuration()) {
    return Error(Reason::kInvalidRequest,
                 absl::StrCat("\"", texts[0], "\"; required: a duration with units, for example "
                              "90s, 10m or 1h30m"));
  }
  duration = value;
  return absl::OkStatus();
}

absl::Status SetListen(const Texts& texts, ServerOptions& options) {
  options.listen.clear();
  for (const std::string& text : texts) {
    PW_ASSIGN_OR_RETURN(ListenAddress address, ParseListenAddress(text));
    options.listen.push_back(std::move(address));
  }
  return absl::OkStatus();
}

absl::Status SetLogLevel(const Texts& texts, ServerOptions& options) {
  for (const absl::string_view level : kLogLevels) {
    if (texts[0] != level) continue;
    options.log_level = texts[0];
    return absl::OkStatus();
  }
  return Error(Reason::kInvalidRequest, absl::StrCat("\"", texts[0], "\"; required: one of ",
                                                     absl::StrJoin(kLogLevels, ", ")));
}

std::string ShowListen(const ServerOptions& options) {
  return absl::StrJoin(options.listen, ",", [](std::string* out, const ListenAddress& address) {
    absl::StrAppend(out, address.ToString());
  });
}

const ServerSetting kSettings[] = {
    {"listen", "ADDRESS",
     "Where to listen: unix:///PATH (its directory must be the user's alone) or 127.0.0.1:PORT "
     "(0: any free port), which needs --token-file. Other hosts need TLS, which this build does "
     "not have. Default: planewise/planewise.sock in $XDG_RUNTIME_DIR",
     true, SetListen, ShowListen},
    {"token-file", "FILE",
     "The token that callers on TCP present; made (mode 0600) if it is missing", false,
     [](const Texts& t, ServerOptions& o) { o.token_file = t[0]; return absl::OkStatus(); },
     [](const ServerOptions& o) { return o.token_file; }},
    {"port-file", "FILE", "Write the TCP port to this file once the daemon listens", false,
     [](const Texts& t, ServerOptions& o) { o.port_file = t[0]; return absl::OkStatus(); },
     [](const ServerOptions& o) { return o.port_file; }},
    {"store", "DIR",
     "The directory in which saved models are durable; made if it is missing. Default: none, "
     "models last as long as the process",
     false, [](const Texts& t, ServerOptions& o) { o.store = t[0]; return absl::OkStatus(); },
     [](const ServerOptions& o) { return o.store; }},
    {"root", "DIR",
     "A directory below which models may be read from. Default: none, no model can be loaded",
     true, [](const Texts& t, ServerOptions& o) { o.roots = t; return absl::OkStatus(); },
     [](const ServerOptions& o) { return absl::StrJoin(o.roots, ","); }},
    {"memory-limit", "SIZE",
     "Memory for weights, saved operands, windows and workspace. Default: 80 % of this machine's",
     false,
     [](const Texts& t, ServerOptions& o) { return SetSize(t, o.memory_limit_bytes); },
     [](const ServerOptions& o) { return ByteSizeText(o.memory_limit_bytes); }},
    {"threads", "COUNT", "Threads that compute. Default: one per core", false,
     [](const Texts& t, ServerOptions& o) { return SetCount(t, o.threads); },
     [](const ServerOptions& o) { return absl::StrCat(o.threads); }},
    {"session-input-window", "SIZE",
     "Input bytes that a session may send ahead of execution. Default: 64MiB", false,
     [](const Texts& t, ServerOptions& o) { return SetSize(t, o.session.input_window_bytes); },
     [](const ServerOptions& o) { return ByteSizeText(o.session.input_window_bytes); }},
    {"session-result-budget", "SIZE",
     "Result bytes that a session keeps until they are acknowledged. Default: 64MiB", false,
     [](const Texts& t, ServerOptions& o) { return SetSize(t, o.session.result_budget_bytes); },
     [](const ServerOptions& o) { return ByteSizeText(o.session.result_budget_bytes); }},
    {"session-saved-operand-budget", "SIZE",
     "What a session's forwards may keep for their backwards. Default: 4GiB", false,
     [](const Texts& t, ServerOptions& o) {
       return SetSize(t, o.session.saved_operand_budget_bytes);
     },
     [](const ServerOptions& o) { return ByteSizeText(o.session.saved_operand_budget_bytes); }},
    {"session-timeout", "DURATION",
     "A session without frames or heartbeats ends after this. Default: 10m", false,
     [](const Texts& t, ServerOptions& o) { return SetDuration(t, o.session.timeout); },
     [](const ServerOptions& o) { return absl::FormatDuration(o.session.timeout); }},
    {"sessions-max", "COUNT", "Sessions at a time. Default: 256", false,
     [](const Texts& t, ServerOptions& o) { return SetCount(t, o.session.sessions_max); },
     [](const ServerOptions& o) { return absl::StrCat(o.session.sessions_max); }},
    {"models-max", "COUNT", "Hosted models. Default: 256", false,
     [](const Texts& t, ServerOptions& o) { return SetCount(t, o.catalog.models_max); },
     [](const ServerOptions& o) { return absl::StrCat(o.catalog.models_max); }},
    {"live-versions-max", "COUNT", "Versions of one model in memory. Default: 3", false,
     [](const Texts& t, ServerOptions& o) { return SetCount(t, o.catalog.live_versions_max); },
     [](const ServerOptions& o) { return absl::StrCat(o.catalog.live_versions_max); }},
    {"drain-grace", "DURATION",
     "After SIGTERM, how long work that runs may take to end. Default: 10s", false,
     [](const Texts& t, ServerOptions& o) { return SetDuration(t, o.drain_grace); },
     [](const ServerOptions& o) { return absl::FormatDuration(o.drain_grace); }},
    {"log-level", "LEVEL", "debug, info, warn or error; the log is JSON lines on stderr. "
     "Default: info",
     false, SetLogLevel, [](const ServerOptions& o) { return o.log_level; }},
};

}  // namespace

absl::Span<const ServerSetting> ServerSettings() { return kSettings; }

}  // namespace planewise
