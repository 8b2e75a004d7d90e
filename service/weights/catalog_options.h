#ifndef PLANEWISE_SERVICE_WEIGHTS_CATALOG_OPTIONS_H_
#define PLANEWISE_SERVICE_WEIGHTS_CATALOG_OPTIONS_H_
// What the model catalog is given: its limits, its settings, and what it works
// with.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/executor.h"
#include "core/base/file_system.h"
#include "core/checkpoint/model_store.h"
#include "core/quant/quantizer.h"
#include "core/tensor/memory_budget.h"
#include "planner/switch_snapshot.h"
#include "service/schedule/background_runner.h"
#include "service/weights/catalog_requests.h"

namespace planewise {

struct CatalogLimits {
  int models_max = 256;
  // Versions of one model in memory at once, the newest among them.
  int live_versions_max = 3;
  // A younger lease is never taken back.
  absl::Duration lease_age_min = absl::Minutes(2);
  // Create, switch, save, verify and delete that wait or run.
  int jobs_max = 64;
  // Answers kept for repeated request ids, for each kind of request.
  int remembered_requests = 128;
  int request_id_bytes_max = 128;
};

struct CatalogOptions {
  CatalogLimits limits;
  // Where models may be read from, as FileSystem::Resolve gives them.
  std::vector<std::string> source_roots;
  DeviceFacts device;
  // Told of every change, on the executor; nullopt: the model is gone. For
  // health reports. May be empty.
  std::function<void(const std::string& name, std::optional<ModelState>)> on_state_change;
};

// All outlive the catalog. No store: versions last as long as the process.
struct CatalogResources {
  Executor* executor = nullptr;
  const Clock* clock = nullptr;
  BackgroundRunner* runner = nullptr;
  FileSystem* file_system = nullptr;
  std::shared_ptr<MemoryBudget> budget;
  const Quantizer* quantizer = nullptr;
  ModelStore* store = nullptr;
};

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_WEIGHTS_CATALOG_OPTIONS_H_
