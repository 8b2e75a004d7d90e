// Times of the planner's pure functions. Targets: 1,000 weights validated in
// 5 ms.

#include "benchmark/benchmark.h"
#include "planner/hf_config_reader.h"
#include "planner/mode_switch.h"
#include "planner/published_configs.h"
#include "planner/what_if.h"

namespace planewise {
namespace {

Recipe Mxfp8(BackwardOverride backward_override) {
  Recipe recipe = DefaultRecipe(Format::kMxfp8);
  recipe.backward_override = backward_override;
  return recipe;
}

// Row-only weights asked for a quantized backward: the verdict with the most
// to say.
SwitchSnapshot RowOnlySnapshot(int64_t weights) {
  SwitchSnapshot snapshot;
  snapshot.model = "model";
  snapshot.recipe = Mxfp8(BackwardOverride::kDequantized);
  snapshot.source_path = "/models/model";
  snapshot.available_bytes = int64_t{1} << 50;
  snapshot.device = {"cpu", {Format::kNone, Format::kMxfp8}};
  for (int64_t i = 0; i < weights; ++i) {
    SwitchWeight weight;
    weight.name = "model.layers." + std::to_string(i) + ".self_attn.q_proj.weight";
    weight.shape = {4096, 4096};
    weight.format = Format::kMxfp8;
    weight.row = true;
    snapshot.weights.push_back(std::move(weight));
  }
  return snapshot;
}

void BM_ValidateModeSwitch(benchmark::State& state, BackwardOverride target) {
  const SwitchSnapshot snapshot = RowOnlySnapshot(state.range(0));
  for (auto _ : state) {
    benchmark::DoNotOptimize(ValidateModeSwitch(snapshot, {Mxfp8(target)}));
  }
}
BENCHMARK_CAPTURE(BM_ValidateModeSwitch, needs_master, BackwardOverride::kNone)
    ->Arg(1000)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_ValidateModeSwitch, allowed, BackwardOverride::kHighPrecision)
    ->Arg(1000)
    ->Unit(benchmark::kMillisecond);

void BM_PlanFromConfig(benchmark::State& state) {
  PlanOptions options;
  options.recipe = Mxfp8(BackwardOverride::kNone);
  for (auto _ : state) {
    const auto config = ReadHfConfig(kLlama3.config_json);
    benchmark::DoNotOptimize(PlanModel(*BuildInventory(*config), options));
  }
}
BENCHMARK(BM_PlanFromConfig)->Unit(benchmark::kMillisecond);

void BM_WhatIfMatrix(benchmark::State& state) {
  const TensorInventory inventory = *BuildInventory(*ReadHfConfig(kLlama3.config_json));
  PlanOptions options;
  options.recipe = Mxfp8(BackwardOverride::kNone);
  for (auto _ : state) benchmark::DoNotOptimize(WhatIf(inventory, options));
}
BENCHMARK(BM_WhatIfMatrix)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace planewise

BENCHMARK_MAIN();
