#ifndef PLANEWISE_PLANNER_INVENTORY_MATCH_H_
#define PLANEWISE_PLANNER_INVENTORY_MATCH_H_
// Compares what an architecture has with what a checkpoint holds, exactly and
// both ways: nothing missing, extra or of another shape.
//
// Not here: the architecture's tensors (tensor_inventory.h); reading
// checkpoints (core/checkpoint/).

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/numeric/dtype.h"
#include "planner/tensor_inventory.h"

namespace planewise {

// A tensor of a checkpoint, as its header states it.
struct SourceTensor {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
};

struct InventoryMatch {
  TensorInventory inventory;         // with dtype and source_name of the checkpoint
  std::vector<std::string> ignored;  // source tensors that are known to carry no weights
};

// Base-model tensors may have the inventory's base_prefix or not, whichever the
// architecture says. INVALID_ARGUMENT with the differences as violations:
//   SHAPE_MISMATCH: observed and expected shape; "looks transposed" where it does;
//   INVALID_CHECKPOINT: a tensor is missing, extra, or there twice;
//   DTYPE_UNSUPPORTED: not F32, F16 or BF16.
// The status has the reason of the first one; all are counted, 20 are listed.
absl::StatusOr<InventoryMatch> MatchInventory(const TensorInventory& inventory,
                                              absl::Span<const SourceTensor> source);

}  // namespace planewise

#endif  // PLANEWISE_PLANNER_INVENTORY_MATCH_H_
