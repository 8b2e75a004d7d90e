#ifndef PLANEWISE_SERVICE_WEIGHTS_CATALOG_FIXTURE_H_
#define PLANEWISE_SERVICE_WEIGHTS_CATALOG_FIXTURE_H_
// For tests of the catalog: one on a stepped executor and a file system in
// memory, with a small BERT to load.

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/memory_file_system.h"
#include "gtest/gtest.h"
#include "service/weights/model_catalog.h"
#include "tests/testing/hf_model.h"
#include "tests/testing/sim_background_runner.h"
#include "tests/testing/sim_clock.h"
#include "tests/testing/sim_executor.h"
#include "tests/testing/status_matchers.h"

namespace planewise {

class CatalogFixture : public ::testing::Test {
 protected:
  static constexpr absl::string_view kSource = "/models/tiny";

  CatalogFixture() {
    PW_EXPECT_OK(files_.MakeDirectory("/models"));
    PW_EXPECT_OK(files_.SyncDirectory("/"));
    options_.source_roots = {"/models"};
    options_.device = {"cpu", {Format::kNone, Format::kMxfp8}};
    options_.on_state_change = [this](const std::string& name, std::optional<ModelState> state) {
      states_.push_back({name, state});
    };
  }

  // The catalog, made when it is first asked for.
  ModelCatalog& catalog() {
    if (catalog_ == nullptr) {
      catalog_ = std::make_unique<ModelCatalog>(
          CatalogResources{&executor_, &clock_, &runner_, &files_, budget_, &ScalarQuantizer(),
                           store_.get()},
          options_);
    }
    return *catalog_;
  }

  void WriteSource(const std::vector<ModelTensor>& tensors,
                   const std::string& directory = std::string(kSource)) {
    PW_ASSERT_OK(WriteHfModel(files_, directory, kTinyBert, tensors));
  }
  void WriteSource() { WriteSource(RandomTensors(kTinyBert, DType::kF32, 1)); }

  void OpenStore() {
    auto store = ModelStore::Open(files_, "/store", StoreAccess::kReadWrite);
    PW_ASSERT_OK(store);
    store_ = *std::move(store);
  }

  // Everything that is not durable is lost, sources too.
  void Restart() {
    catalog_ = nullptr;
    store_ = nullptr;
    files_.Crash(Unsynced::kLost, 1);
    OpenStore();
  }

  static CreateModelSpec Spec(const std::string& name,
                              BackwardOverride backward_override = BackwardOverride::kDequantized) {
    CreateModelSpec spec;
    spec.name = name;
    spec.source_path = std::string(kSource);
    spec.recipe = DefaultRecipe(Format::kMxfp8);
    spec.recipe.backward_override = backward_override;
    return spec;
  }

  static DeleteModelSpec Deletion(const std::string& name) {
    DeleteModelSpec spec;
    spec.name = name;
    return spec;
  }

  absl::StatusOr<ModelDescription> Create(CreateModelSpec spec) {
    return Wait<ModelDescription>([&](DoneCallback<ModelDescription> done) {
      catalog().Create(principal_, std::move(spec), nullptr, std::move(done));
    });
  }

  absl::StatusOr<DeleteOutcome> Delete(DeleteModelSpec spec) {
    return Wait<DeleteOutcome>([&](DoneCallback<DeleteOutcome> done) {
      catalog().Delete(principal_, spec, std::move(done));
    });
  }

  absl::StatusOr<SwitchOutcome> Switch(SwitchSpec spec) {
    return Wait<SwitchOutcome>([&](DoneCallback<SwitchOutcome> done) {
      catalog().Switch(principal_, std::move(spec), std::move(done));
    });
  }

  absl::StatusOr<SaveOutcome> Save(const std::string& name, const std::string& request_id = "") {
    return Wait<SaveOutcome>([&](DoneCallback<SaveOutcome> done) {
      catalog().Save(principal_, name, request_id, nullptr, std::move(done));
    });
  }

  absl::StatusOr<VerifyOutcome> Verify(const std::string& name) {
    return Wait<VerifyOutcome>([&](DoneCallback<VerifyOutcome> done) {
      catalog().Verify(principal_, name, nullptr, std::move(done));
    });
  }

  // Calls `start` with a callback and runs until it was called.
  template <typename T, typename Start>
  absl::StatusOr<T> Wait(Start start) {
    std::optional<absl::StatusOr<T>> result;
    start([&result](absl::StatusOr<T> r) { result = std::move(r); });
    EXPECT_FALSE(result.has_value()) << "answered inside the call";
    runner_.RunUntilIdle();
    if (!result.has_value()) return absl::DeadlineExceededError("no answer");
    return *std::move(result);
  }

  const Principal principal_{"unix:1000"};
  SimClock clock_;
  SimExecutor executor_{clock_};
  SimBackgroundRunner runner_{executor_};
  MemoryFileSystem files_;
  std::shared_ptr<MemoryBudget> budget_ = MemoryBudget::Create(int64_t{64} << 20);
  CatalogOptions options_;
  std::vector<std::pair<std::string, std::optional<ModelState>>> states_;
  std::unique_ptr<ModelStore> store_;
  std::unique_ptr<ModelCatalog> catalog_;
};

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_WEIGHTS_CATALOG_FIXTURE_H_
