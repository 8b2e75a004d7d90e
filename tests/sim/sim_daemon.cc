#include "tests/sim/sim_daemon.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/testing/hf_model.h"
#include "tests/testing/status_matchers.h"

namespace planewise {

SimDaemon::SimDaemon(const SessionLimits& limits, SimRandom& random) : random_(random) {
  PW_EXPECT_OK(files_.MakeDirectory("/models"));
  gemm_ = *CpuGemm::Create(/*threads=*/1, *budget_);
  compute_ = MakeCpuLinearCompute({gemm_.get(), &VectorQuantizer(), budget_.get()});
  linear_ = std::make_unique<LinearExecutor>(*compute_, runner_, budget_);
  store_ = *ModelStore::Open(files_, "/store", StoreAccess::kReadWrite);
  CatalogOptions options;
  options.source_roots = {"/models"};
  options.device = {"cpu", {Format::kNone, Format::kMxfp8}};
  // Short enough that switches take leases back.
  options.limits.lease_age_min = absl::Milliseconds(500);
  catalog_ = std::make_unique<ModelCatalog>(
      CatalogResources{&executor_, &clock_, &runner_, &files_, budget_, &VectorQuantizer(),
                       store_.get()},
      options);
  sessions_ = std::make_unique<SessionTable>(
      SessionResources{&executor_, &clock_, &runner_, catalog_.get(), linear_.get(), budget_},
      limits, [&random] { return random.Bits(); });
}

void SimDaemon::WriteModel(const std::string& name, uint64_t seed) {
  PW_ASSERT_OK(WriteHfModel(files_, absl::StrCat("/models/", name), kTinyBert,
                            RandomTensors(kTinyBert, DType::kF32, seed)));
}

void SimDaemon::Host(const std::string& name, bool trainable,
                     DoneCallback<ModelDescription> done) {
  CreateModelSpec spec;
  spec.name = name;
  spec.source_path = absl::StrCat("/models/", name);
  spec.recipe = DefaultRecipe(Format::kMxfp8);
  spec.policy = PlanePolicy::kBoth;
  spec.trainable = trainable;
  catalog_->Create(principal_, std::move(spec), nullptr, std::move(done));
}

bool SimDaemon::CopyAnyChunk() {
  return runner_.RunAny(Lane::kTransport, [this](int64_t count) { return random_.Below(count); });
}

bool SimDaemon::Step() {
  const int64_t first = random_.Below(4);
  for (int64_t i = 0; i < 4; ++i) {
    switch ((first + i) % 4) {
      case 0: if (executor_.RunOne()) return true; break;
      case 1: if (runner_.RunOne(Lane::kCompute)) return true; break;
      case 2: if (runner_.RunOne(Lane::kStorage)) return true; break;
      case 3: if (CopyAnyChunk()) return true; break;
    }
  }
  return false;
}

}  // namespace planewise
