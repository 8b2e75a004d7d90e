#include "service/rpc/health_reporter.h"

#include <map>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace planewise {
namespace {


class FakeHealthService final : public grpc::HealthCheckServiceInterface {
 public:
  std::map<std::string, bool> entries;

  void SetServingStatus(const std::string& name, bool serving) override {
    entries[name] = serving;
  }
  void SetServingStatus(bool serving) override {
    for (auto& [name, value] : entries) value = serving;
  }
};

auto Services(bool serving) {
  return std::map<std::string, bool>{{"", serving},
                                     {"planewise.v1.Models", serving},
                                     {"planewise.v1.Sessions", serving},
                                     {"planewise.v1.Server", serving}};
}

TEST(HealthReporterTest, ServicesServeOnlyBetweenStartAndDrain) {
  FakeHealthService service;
  HealthReporter reporter(service);
  EXPECT_EQ(service.entries, Services(false));
  reporter.OnPhase(ServingPhase::kServing);
  EXPECT_EQ(service.entries, Services(true));
  reporter.OnPhase(ServingPhase::kDraining);
  EXPECT_EQ(service.entries, Services(false));
}

TEST(HealthReporterTest, ModelsServeIfTheyAreWholeAndTheDaemonServes) {
  FakeHealthService service;
  HealthReporter reporter(service);
  reporter.OnModel("stored", ModelState::kServing);
  EXPECT_FALSE(service.entries.at("models/stored"));
  reporter.OnPhase(ServingPhase::kServing);
  EXPECT_TRUE(service.entries.at("models/stored"));

  reporter.OnModel("new", ModelState::kLoading);
  EXPECT_FALSE(service.entries.at("models/new"));
  reporter.OnModel("new", ModelState::kServing);
  EXPECT_TRUE(service.entries.at("models/new"));
  reporter.OnModel("new", ModelState::kDamaged);
  EXPECT_FALSE(service.entries.at("models/new"));

  reporter.OnModel("stored", std::nullopt);
  EXPECT_FALSE(service.entries.at("models/stored"));
  reporter.OnPhase(ServingPhase::kDraining);
  EXPECT_FALSE(service.entries.at("models/new"));
}

}  // namespace
}  // namespace planewise
