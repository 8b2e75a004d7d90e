#ifndef PLANEWISE_CORE_LAYER_MODEL_VERSION_H_
#define PLANEWISE_CORE_LAYER_MODEL_VERSION_H_
// An immutable version of a hosted model: what readers pin, what the store
// writes and reads back. Versions share unchanged weights.
//
// Not here: publishing and leases (service/weights/), bytes on disk
// (core/checkpoint/).

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/base/strong_int.h"
#include "core/recipe/recipe.h"
#include "core/tensor/plane_set.h"
#include "core/tensor/primary_weight.h"

namespace planewise {

enum class LayerKind : uint8_t { kLinear };

absl::string_view Name(LayerKind kind);

// Y = X * W^T + bias.
struct HostedLayer {
  std::string name;  // for example "encoder.layer.0.attention.self.query"
  LayerKind kind = LayerKind::kLinear;
  std::shared_ptr<const PrimaryWeight> weight;  // [out, in]
  std::shared_ptr<const PrimaryWeight> bias;    // [1, out], high precision; or nullptr
  PlaneDecision decision;
  // How the weight came to be, for example "quantized from F32 via BF16".
  std::string provenance;

  int64_t stored_bytes() const;
};

// A tensor of the source that stays with the trainer.
struct LocalTensor {
  std::string name;
  std::vector<int64_t> shape;
  std::string why;

  bool operator==(const LocalTensor&) const = default;
};

struct ModelVersion {
  std::string model;
  WeightVersion version;
  Recipe recipe;
  PlanePolicy policy = PlanePolicy::kAuto;
  bool backward_enabled = true;
  bool trainable = false;
  std::string source_path;
  std::vector<HostedLayer> layers;
  std::vector<LocalTensor> local;

  // nullptr if there is none.
  const HostedLayer* FindLayer(absl::string_view name) const;
  int64_t stored_bytes() const;
};

}  // namespace planewise

#endif  // PLANEWISE_CORE_LAYER_MODEL_VERSION_H_
