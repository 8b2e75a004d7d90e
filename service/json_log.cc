#include "service/json_log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <cstddef>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/time/time.h"
#include "core/base/error.h"

namespace planewise {
namespace {

// In the order of LogLevel.
constexpr absl::string_view kLevelNames[] = {"debug", "info", "warn", "error"};
constexpr spdlog::level::level_enum kSinkLevels[] = {spdlog::level::debug, spdlog::level::info,
                                                     spdlog::level::warn, spdlog::level::err};

}  // namespace

JsonLog::JsonLog(std::shared_ptr<spdlog::logger> sink, absl::string_view level, const Clock& clock)
    : sink_(std::move(sink)), clock_(clock) {
  sink_->set_pattern("%v");
  for (size_t i = 0; i < std::size(kLevelNames); ++i) {
    if (level == kLevelNames[i]) sink_->set_level(kSinkLevels[i]);
  }
}

void JsonLog::Write(LogLevel level, absl::string_view event,
                    std::initializer_list<LogField> fields) {
  const auto index = static_cast<size_t>(level);
  if (!sink_->should_log(kSinkLevels[index])) return;
  nlohmann::ordered_json line;
  line["time"] = absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", clock_.WallTime(), absl::UTCTimeZone());
  line["level"] = std::string(kLevelNames[index]);
  line["event"] = std::string(event);
  for (const auto& [name, value] : fields) {
    std::visit([&line, name = std::string(name)](const auto& v) { line[name] = v; }, value);
  }
  // Names may quote bytes that are not UTF-8; a log line must not fail for them.
  sink_->log(kSinkLevels[index],
             line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

void JsonLog::Ended(const CallRecord& record) {
  const absl::StatusCode code = record.status.code();
  const bool our_fault = code == absl::StatusCode::kInternal ||
                         code == absl::StatusCode::kUnknown || code == absl::StatusCode::kDataLoss;
  const std::optional<Reason> reason = ReasonOf(record.status);
  Write(our_fault ? LogLevel::kError : LogLevel::kInfo, "call",
        {{"method", record.method},
         {"requestId", record.request_id},
         {"traceParent", record.trace_parent},
         {"principal", record.principal.name},
         {"peer", record.peer},
         {"code", absl::StatusCodeToString(code)},
         {"reason", reason ? std::string(FactsOf(*reason).name) : ""},
         {"message", std::string(record.status.message())},
         {"durationMs", absl::ToDoubleMilliseconds(record.duration)}});
}

std::shared_ptr<spdlog::logger> StderrSink() {
  auto logger = std::make_shared<spdlog::logger>(
      "planewised", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->flush_on(spdlog::level::debug);
  return logger;
}

}  // namespace planewise
