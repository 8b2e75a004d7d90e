#include "service/rpc/health_reporter.h"

#include "absl/strings/str_cat.h"

namespace planewise {
namespace {

constexpr const char* kServices[] = {"", "planewise.v1.Models", "planewise.v1.Sessions",
                                     "planewise.v1.Server"};

}  // namespace

std::string HealthNameOfModel(absl::string_view model) { return absl::StrCat("models/", model); }

HealthReporter::HealthReporter(grpc::HealthCheckServiceInterface& service) : service_(service) {
  OnPhase(ServingPhase::kStarting);
}

void HealthReporter::OnPhase(ServingPhase phase) {
  phase_ = phase;
  for (const char* name : kServices) Report(name, true);
  for (const auto& [model, serves] : models_) Report(HealthNameOfModel(model), serves);
}

void HealthReporter::OnModel(const std::string& model, std::optional<ModelState> state) {
  const bool serves = state == ModelState::kServing;
  if (state) {
    models_[model] = serves;
  } else {
    models_.erase(model);
  }
  Report(HealthNameOfModel(model), serves);
}

void HealthReporter::Report(const std::string& name, bool serving) {
  service_.SetServingStatus(name, serving && phase_ == ServingPhase::kServing);
}

}  // namespace planewise
