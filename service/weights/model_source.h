#ifndef PLANEWISE_SERVICE_WEIGHTS_MODEL_SOURCE_H_
#define PLANEWISE_SERVICE_WEIGHTS_MODEL_SOURCE_H_
// A model directory that has been understood: files, tensors and the plan of
// hosting them, before any tensor is read.
//
// Not here: reading tensors (model_loader.h).

#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/file_system.h"
#include "core/checkpoint/hf_directory.h"
#include "planner/memory_model.h"
#include "planner/tensor_inventory.h"
#include "service/weights/catalog_requests.h"

namespace planewise {

struct ModelSource {
  HfDirectory directory;
  TensorInventory inventory;  // with the checkpoint's names and types
  ModelPlan plan;
};

// Opens the directory that `spec` names, compares its tensors with those of its
// architecture, and plans. Reads headers only. Blocks on the disk.
// PATH_OUTSIDE_ROOTS, NOT_FOUND, and as HfDirectory::Open, ReadHfConfig,
// MatchInventory and PlanModel.
absl::StatusOr<ModelSource> OpenModelSource(FileSystem& file_system,
                                            absl::Span<const std::string> roots,
                                            const CreateModelSpec& spec);

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_WEIGHTS_MODEL_SOURCE_H_
