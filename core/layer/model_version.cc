#include "core/layer/model_version.h"

namespace planewise {

absl::string_view Name(LayerKind kind) {
  switch (kind) {
    case LayerKind::kLinear: return "linear";
  }
  return "invalid";
}

int64_t HostedLayer::stored_bytes() const {
  return weight->stored_bytes() + (bias != nullptr ? bias->stored_bytes() : 0);
}

const HostedLayer* ModelVersion::FindLayer(absl::string_view name) const {
  for (const HostedLayer& layer : layers) {
    if (layer.name == name) return &layer;
  }
  return nullptr;
}

int64_t ModelVersion::stored_bytes() const {
  int64_t total = 0;
  for (const HostedLayer& layer : layers) total += layer.stored_bytes();
  return total;
}

}  // namespace planewise
