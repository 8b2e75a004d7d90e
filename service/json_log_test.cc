#include "service/json_log.h"

#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "core/base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/sim_clock.h"

namespace planewise {
namespace {

class JsonLogTest : public testing::Test {
 protected:
  JsonLog Log(const char* level) {
    return JsonLog(std::make_shared<spdlog::logger>(
                       "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(text_)),
                   level, clock_);
  }

  nlohmann::json Line() { return nlohmann::json::parse(text_.str()); }

  SimClock clock_;
  std::ostringstream text_;
};

TEST_F(JsonLogTest, EventIsOneObjectOnOneLine) {
  Log("info").Write(LogLevel::kWarn, "swept",
                    {{"file", "a\nb"}, {"count", int64_t{3}}, {"ms", 0.5}});
  const std::string text = text_.str();
  EXPECT_EQ(text.find('\n'), text.size() - 1);
  const nlohmann::json line = Line();
  EXPECT_EQ(line["level"], "warn");
  EXPECT_EQ(line["event"], "swept");
  EXPECT_EQ(line["file"], "a\nb");
  EXPECT_EQ(line["count"], 3);
  EXPECT_EQ(line["ms"], 0.5);
  EXPECT_EQ(line["time"].get<std::string>().back(), 'Z');
}

TEST_F(JsonLogTest, LowerLevelsAreLeftOut) {
  Log("warn").Write(LogLevel::kInfo, "quiet", {});
  EXPECT_EQ(text_.str(), "");
  Log("debug").Write(LogLevel::kDebug, "loud", {});
  EXPECT_EQ(Line()["event"], "loud");
}

TEST_F(JsonLogTest, CallTellsWhoWhatAndHowItEnded) {
  CallRecord record;
  record.method = "Models.GetModel";
  record.request_id = "r1";
  record.principal.name = "token";
  record.status = Error(Reason::kNotFound, "model \"a\": not hosted");
  record.duration = absl::Microseconds(1500);
  Log("info").Ended(record);
  const nlohmann::json line = Line();
  EXPECT_EQ(line["level"], "info");
  EXPECT_EQ(line["method"], "Models.GetModel");
  EXPECT_EQ(line["requestId"], "r1");
  EXPECT_EQ(line["principal"], "token");
  EXPECT_EQ(line["code"], "NOT_FOUND");
  EXPECT_EQ(line["reason"], "NOT_FOUND");
  EXPECT_EQ(line["message"], "model \"a\": not hosted");
  EXPECT_EQ(line["durationMs"], 1.5);
}

TEST_F(JsonLogTest, OurFaultIsAnError) {
  CallRecord record;
  record.status = Error(Reason::kInternal, "broken \xFF");
  Log("error").Ended(record);
  EXPECT_EQ(Line()["level"], "error");
}

}  // namespace
}  // namespace planewise
