#ifndef PLANEWISE_SERVICE_WEIGHTS_MODE_SWITCHER_H_
#define PLANEWISE_SERVICE_WEIGHTS_MODE_SWITCHER_H_
// Makes the version of a model in another mode: shares what stays as it is,
// drops planes that are given up, makes those that can be made exactly.
//
// Not here: may it be done (planner/mode_switch.h), publishing the version
// (model_catalog.h).

#include <atomic>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/strong_int.h"
#include "core/layer/model_version.h"
#include "core/quant/quantizer.h"
#include "core/recipe/recipe.h"
#include "core/tensor/memory_budget.h"
#include "planner/mode_switch.h"

namespace planewise {

// `from` in the mode `target`, as version `number`. `verdicts` are those of a
// validation that runs, in the order of layers; their decisions say which planes
// the result has. A weight whose bytes stay keeps its epoch and shares its
// planes. New planes are MemoryUse::kWeights of `budget`.
// RESOURCE_EXHAUSTED; CANCELLED once `cancel` is true.
absl::StatusOr<ModelVersion> SwitchModel(const ModelVersion& from, const Recipe& target,
                                         absl::Span<const WeightVerdict> verdicts,
                                         WeightVersion number, const Quantizer& quantizer,
                                         MemoryBudget& budget, const std::atomic<bool>& cancel);

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_WEIGHTS_MODE_SWITCHER_H_
