#ifndef PLANEWISE_SERVICE_JSON_LOG_H_
#define PLANEWISE_SERVICE_JSON_LOG_H_
// The daemon's log: one JSON object a line on stderr, with time, level, event
// and whatever the event has to say.
//   {"time":"2026-01-02T03:04:05.678Z","level":"info","event":"call",
//    "method":"Models.GetModel","requestId":"...","code":"OK","durationMs":0.41}
//
// Not here: which events there are (server.cc).

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/string_view.h"
#include "core/base/clock.h"
#include "service/rpc/call.h"

namespace spdlog {
class logger;
}

namespace planewise {

enum class LogLevel : uint8_t { kDebug, kInfo, kWarn, kError };

using LogValue = std::variant<std::string, int64_t, double>;
using LogField = std::pair<absl::string_view, LogValue>;

// Thread-safe.
class JsonLog final : public CallLog {
 public:
  // Lines below `level` ("debug", "info", "warn", "error") are left out. Takes
  // a logger so that tests can read what is written.
  JsonLog(std::shared_ptr<spdlog::logger> sink, absl::string_view level, const Clock& clock);

  void Write(LogLevel level, absl::string_view event, std::initializer_list<LogField> fields);

  // A call at level info; one that failed with our own fault at level error.
  void Ended(const CallRecord& record) override;

 private:
  const std::shared_ptr<spdlog::logger> sink_;
  const Clock& clock_;
};

// Writes to stderr at once, from any thread.
std::shared_ptr<spdlog::logger> StderrSink();

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_JSON_LOG_H_
