#ifndef PLANEWISE_PLANNER_TENSOR_INVENTORY_H_
#define PLANEWISE_PLANNER_TENSOR_INVENTORY_H_
// Every tensor that an architecture has: which are hosted, which stay with the
// trainer and why.
//
// Not here: what a checkpoint really holds (inventory_match.h); bytes
// (memory_model.h).

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/numeric/dtype.h"
#include "planner/model_config.h"

namespace planewise {

enum class TensorRole : uint8_t {
  kLinearWeight,  // [out, in]
  kLinearBias,    // [out]
  kNorm,
  kEmbedding,
  kHead,      // lm_head
  kPosition,  // learned positions
};

absl::string_view Name(TensorRole role);

struct InventoryTensor {
  // As the architecture's own module tree names it, for example
  // "encoder.layer.0.attention.self.query.weight".
  std::string name;
  std::vector<int64_t> shape;
  TensorRole role = TensorRole::kLinearWeight;
  std::string layer;      // the module, for example "encoder.layer.0.attention.self.query"
  bool hosted = false;    // part of a linear layer that the daemon hosts
  std::string why_local;  // for example "embedding: stays with the trainer"; empty if hosted
  std::string tied_to;    // the tensor it shares; a checkpoint may leave it out
  // The config's dtype, no source name; after MatchInventory those of the
  // checkpoint (source_name empty if a tied tensor was left out).
  DType dtype = DType::kF32;
  std::string source_name;

  bool operator==(const InventoryTensor&) const = default;
  int64_t elements() const;
  int64_t source_bytes() const;
};

struct TensorInventory {
  std::string architecture;
  // Prefix of the base model's tensors that a checkpoint may have although the
  // architecture has not, or the other way round, for example "bert.".
  std::string base_prefix;
  // In module order; a layer's weight comes directly before its bias.
  std::vector<InventoryTensor> tensors;

  // nullptr if there is none.
  const InventoryTensor* Find(absl::string_view name) const;
  // Tied tensors count once.
  int64_t parameters() const;
  int64_t source_bytes() const;
};

// Every tensor of `config`. INVALID_ARGUMENT as CheckModelConfig.
absl::StatusOr<TensorInventory> BuildInventory(const ModelConfig& config);

}  // namespace planewise

#endif  // PLANEWISE_PLANNER_TENSOR_INVENTORY_H_
