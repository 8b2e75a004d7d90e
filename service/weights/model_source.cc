#include "service/weights/model_source.h"

#include <utility>
#include <vector>

#include "core/base/status_macros.h"
#include "core/checkpoint/path_confinement.h"
#include "planner/hf_config_reader.h"
#include "planner/inventory_match.h"
#include "planner/model_config.h"

namespace planewise {
namespace {

std::vector<SourceTensor> SourceTensorsOf(const HfDirectory& directory) {
  std::vector<SourceTensor> tensors;
  for (const HfTensor& tensor : directory.tensors()) {
    tensors.push_back({tensor.name, tensor.dtype, tensor.shape});
  }
  return tensors;
}

}  // namespace

absl::StatusOr<ModelSource> OpenModelSource(FileSystem& file_system,
                                            absl::Span<const std::string> roots,
                                            const CreateModelSpec& spec) {
  PW_ASSIGN_OR_RETURN(const std::string path,
                      ResolveWithinRoots(file_system, spec.source_path, roots));
  HfOpenOptions open_options;
  open_options.roots.assign(roots.begin(), roots.end());
  PW_ASSIGN_OR_RETURN(HfDirectory directory, HfDirectory::Open(file_system, path, open_options));
  PW_ASSIGN_OR_RETURN(const ModelConfig config, ReadHfConfig(directory.config_json()));
  PW_ASSIGN_OR_RETURN(const TensorInventory inventory, BuildInventory(config));
  PW_ASSIGN_OR_RETURN(InventoryMatch match,
                      MatchInventory(inventory, SourceTensorsOf(directory)));
  PlanOptions options;
  options.recipe = spec.recipe;
  options.policy = spec.policy;
  options.backward_enabled = spec.backward_enabled;
  options.trainable = spec.trainable;
  options.future_modes = spec.future_modes;
  PW_ASSIGN_OR_RETURN(ModelPlan plan, PlanModel(match.inventory, options));
  return ModelSource{std::move(directory), std::move(match.inventory), std::move(plan)};
}

}  // namespace planewise
