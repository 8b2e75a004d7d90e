#ifndef PLANEWISE_PLANNER_SWITCH_SNAPSHOT_H_
#define PLANEWISE_PLANNER_SWITCH_SNAPSHOT_H_
// What a mode switch is judged on: the layouts of a model's weights, its
// recipe, the device and the free memory, all at one moment.
//
// Not here: the judgement (mode_switch.h).

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/base/strong_int.h"
#include "core/layer/model_version.h"
#include "core/numeric/dtype.h"
#include "core/recipe/recipe.h"
#include "core/tensor/plane_layout.h"
#include "core/tensor/plane_set.h"

namespace planewise {

// A weight as it is stored now.
struct SwitchWeight {
  std::string name;
  MatrixShape shape;
  DType nominal = DType::kBF16;
  Format format = Format::kNone;
  BlockGeometry geometry = BlockGeometry::k1D;
  int64_t amax_history_length = 0;  // of fp8_delayed
  // Stored and fresh.
  bool row = false;
  bool column = false;
  bool high_precision = false;
  // The high-precision plane was itself dequantized: quantizing it again would
  // round twice.
  bool dequantized = false;
  // Saved operands not consumed yet whose backward reads the column plane.
  int64_t column_operands = 0;
};

// How the provenance of a weight begins whose high-precision plane was made by
// dequantizing.
inline constexpr absl::string_view kDequantizedProvenance = "dequantized from ";

// What `layer` stores now; column_operands is the caller's to count.
SwitchWeight SwitchWeightOf(const HostedLayer& layer);

struct DeviceFacts {
  std::string name;             // for example "cpu"
  std::vector<Format> formats;  // that it can host
};

struct SwitchSnapshot {
  std::string model;
  WeightVersion version;
  Recipe recipe;
  PlanePolicy policy = PlanePolicy::kAuto;
  bool backward_enabled = true;
  std::string source_path;  // the checkpoint that weights came from; may be empty
  std::vector<SwitchWeight> weights;
  int64_t available_bytes = 0;
  DeviceFacts device;
};

// 16 hexadecimal digits: XXH3 of every weight's name, shape, types and stored
// planes, the model's name, version, recipe, policy and backward_enabled, the
// target and the device. Not of free memory or outstanding operands, which are
// checked anew when a switch is carried out.
std::string SwitchFingerprint(const SwitchSnapshot& snapshot, const Recipe& target);

}  // namespace planewise

#endif  // PLANEWISE_PLANNER_SWITCH_SNAPSHOT_H_
