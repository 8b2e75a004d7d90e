#ifndef PLANEWISE_SERVICE_SESSION_LAYER_REQUEST_H_
#define PLANEWISE_SERVICE_SESSION_LAYER_REQUEST_H_
// What an operation asks of a layer, held against the layer: does it exist, do
// the shapes fit, which mode applies.
//
// Not here: whether the stored planes allow the mode (core/layer/linear.h).

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/layer/linear.h"
#include "core/layer/model_version.h"
#include "planewise/v1/session.pb.h"
#include "service/compute/linear_executor.h"

namespace planewise {

// For messages: 'layer "x" of model "m"'.
std::string LayerText(absl::string_view model, absl::string_view layer);

// NOT_FOUND.
absl::StatusOr<PinnedLayer> FindLayer(std::shared_ptr<const ModelVersion> version,
                                      const std::string& name);

// INVALID_ARGUMENT / SHAPE_MISMATCH, naming `layer` and `field`, unless the last
// dimension of `spec`, which has one, is `required`.
absl::Status CheckFeatures(absl::string_view layer, absl::string_view field,
                           const v1::TensorSpec& spec, int64_t required);

// The recipe, override and switches for one call; an override that is not asked
// for is the model's. INVALID_ARGUMENT for an override that the recipe cannot
// take, naming `field`; FAILED_PRECONDITION / NOT_TRAINABLE if `weight_gradient`
// is asked of a model that was created without.
absl::StatusOr<LinearMode> ModeFor(const ModelVersion& version, absl::string_view layer,
                                   v1::BackwardOverride requested, absl::string_view field,
                                   bool weight_gradient);

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_SESSION_LAYER_REQUEST_H_
