#include "service/session/layer_request.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "core/recipe/recipe.h"
#include "proto/recipe/recipe_codec.h"

namespace planewise {

std::string LayerText(absl::string_view model, absl::string_view layer) {
  return absl::StrCat("layer \"", layer, "\" of model \"", model, "\"");
}

absl::StatusOr<PinnedLayer> FindLayer(std::shared_ptr<const ModelVersion> version,
                                      const std::string& name) {
  PinnedLayer layer;
  layer.layer = version->FindLayer(name);
  if (layer.layer == nullptr) {
    return Error(Reason::kNotFound,
                 absl::StrCat("model \"", version->model, "\" version ",
                              version->version.value(), ": it has no layer \"", name,
                              "\"; describe it to see them"))
        .With("model", version->model)
        .With("layer", name);
  }
  layer.version = std::move(version);
  return layer;
}

absl::Status CheckFeatures(absl::string_view layer, absl::string_view field,
                           const v1::TensorSpec& spec, int64_t required) {
  if (spec.shape(spec.shape_size() - 1) == required) return absl::OkStatus();
  const std::string observed = absl::StrCat("[", absl::StrJoin(spec.shape(), ", "), "]");
  const std::string expected = absl::StrCat("[..., ", required, "]");
  return Error(Reason::kShapeMismatch, absl::StrCat(layer, ": ", field, " is ", observed,
                                                    ", required ", expected))
      .With("observed", observed)
      .With("required", expected)
      .WithViolation({Reason::kShapeMismatch, std::string(field),
                      absl::StrCat(observed, ", required ", expected)});
}

absl::StatusOr<LinearMode> ModeFor(const ModelVersion& version, absl::string_view layer,
                                   v1::BackwardOverride requested, absl::string_view field,
                                   bool weight_gradient) {
  LinearMode mode;
  mode.recipe = version.recipe;
  if (requested != v1::BACKWARD_OVERRIDE_UNSPECIFIED) {
    PW_ASSIGN_OR_RETURN(mode.recipe.backward_override, FromProto(requested, field));
    const absl::Status legal = CheckRecipe(mode.recipe);
    if (!legal.ok()) return Annotate(legal, layer);
  }
  if (weight_gradient && !version.trainable) {
    return Error(Reason::kNotTrainable,
                 absl::StrCat(layer, ": weight_gradient is asked for, but the model was created "
                                     "with trainable=false; create it with trainable=true"));
  }
  mode.backward_enabled = version.backward_enabled;
  mode.weight_gradient = weight_gradient;
  return mode;
}

}  // namespace planewise
