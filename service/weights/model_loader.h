#ifndef PLANEWISE_SERVICE_WEIGHTS_MODEL_LOADER_H_
#define PLANEWISE_SERVICE_WEIGHTS_MODEL_LOADER_H_
// Reads a model's hosted tensors one at a time and quantizes each at once, so
// that the high-precision source of no more than one tensor is in memory.
//
// Not here: finding and planning the model (model_source.h), admitting its
// memory, publishing it (model_catalog.h).

#include "absl/status/statusor.h"
#include "core/base/strong_int.h"
#include "core/checkpoint/transfer.h"
#include "core/layer/model_version.h"
#include "core/quant/quantizer.h"
#include "core/tensor/memory_budget.h"
#include "service/weights/catalog_requests.h"
#include "service/weights/model_source.h"

namespace planewise {

// The version `number` of the model that `spec` describes, in memory of
// MemoryUse::kWeights: the planes of the source's plan, to the byte.
// Blocks on the disk. INVALID_ARGUMENT / NON_FINITE_IN_TENSOR, INVALID_CHECKPOINT;
// RESOURCE_EXHAUSTED if `budget` is short of the plan; CANCELLED.
absl::StatusOr<ModelVersion> LoadModel(const ModelSource& source, const CreateModelSpec& spec,
                                       WeightVersion number, const Quantizer& quantizer,
                                       MemoryBudget& budget, const TransferControl& control);

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_WEIGHTS_MODEL_LOADER_H_
