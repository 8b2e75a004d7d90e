#include "clients/cli/model_table.h"

#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/cli/recipe_flags.h"
#include "planner/memory_report.h"
#include "planner/text_table.h"

namespace planewise {
namespace {

std::string StateText(v1::ModelState state) {
  switch (state) {
    case v1::MODEL_STATE_LOADING: return "loading";
    case v1::MODEL_STATE_SERVING: return "serving";
    case v1::MODEL_STATE_DAMAGED: return "DAMAGED";
    default: return "unknown";
  }
}

std::string PlanesText(const v1::WeightDescription& weight) {
  std::vector<std::string> names;
  for (const v1::PlaneBytes& plane : weight.planes()) {
    switch (plane.plane()) {
      case v1::PLANE_ROW: names.push_back("row"); break;
      case v1::PLANE_COLUMN: names.push_back("column"); break;
      case v1::PLANE_HIGH_PRECISION: names.push_back("high precision"); break;
      default: names.push_back("unknown");
    }
  }
  return absl::StrJoin(names, "+");
}

std::string DurableText(uint64_t version) {
  return version == 0 ? "never saved" : absl::StrCat("durable ", version);
}

}  // namespace

std::string ModelSummary(const v1::Model& model) {
  return absl::StrCat(
      "model     ", model.name(), "  ", StateText(model.state()), ", version ", model.version(),
      ", ", DurableText(model.durable_version()), "\n",                                      //
      "recipe    ", RecipeText(model.recipe()), ", ", model.layers_size(), " layers, ",      //
      model.backward_enabled() ? "backward enabled" : "inference only", ", ",                //
      model.trainable() ? "trainable" : "frozen", ", ", model.lease_count(), " leases\n",    //
      "planned   ", FormatBytes(model.planned_bytes()), "\n",                                //
      "actual    ", FormatBytes(model.actual_bytes()), ", drift ",                           //
      model.actual_bytes() - model.planned_bytes(), " B\n",                                  //
      "loading   planned peak ", FormatBytes(model.planned_load_peak_bytes()), ", actual ",  //
      FormatBytes(model.actual_load_peak_bytes()), " beside the weights\n");
}

std::string LayersTable(const v1::Model& model) {
  TextTable table({{"layer"},
                   {"shape"},
                   {"planes"},
                   {"planned B", true},
                   {"actual B", true},
                   {"drift B", true},
                   {"bias B", true}});
  for (const v1::LayerDescription& layer : model.layers()) {
    const v1::WeightDescription& weight = layer.weight();
    table.AddRow({layer.name(), absl::StrCat("[", absl::StrJoin(weight.shape(), ", "), "]"),
                  PlanesText(weight), absl::StrCat(weight.planned_bytes()),
                  absl::StrCat(weight.actual_bytes()),
                  absl::StrCat(weight.actual_bytes() - weight.planned_bytes()),
                  absl::StrCat(layer.bias_bytes())});
  }
  std::string text = table.ToString();
  if (model.layers_size() > 0) {
    const v1::PlaneDecision& decision = model.layers(0).weight().decision();
    absl::StrAppend(&text, "planes: ", decision.why(), "\n");
    for (const std::string& forbidden : decision.forbids()) {
      absl::StrAppend(&text, "forbids ", forbidden, "\n");
    }
  }
  return text;
}

std::string LocalText(const v1::Model& model) {
  std::map<std::string, std::vector<std::string>> by_reason;
  for (const v1::LocalTensor& tensor : model.local()) {
    by_reason[tensor.why()].push_back(tensor.name());
  }
  constexpr size_t kShown = 3;
  std::string text;
  for (const auto& [why, names] : by_reason) {
    const size_t shown = std::min(kShown, names.size());
    absl::StrAppend(
        &text, "local     ", why, ": ",
        absl::StrJoin(names.begin(), names.begin() + static_cast<ptrdiff_t>(shown), ", "),
        names.size() > shown ? absl::StrCat(" and ", names.size() - shown, " more") : "", "\n");
  }
  return text;
}

std::string ModelsTable(const v1::ListModelsResponse& models) {
  TextTable table({{"model"},
                   {"state"},
                   {"version", true},
                   {"durable", true},
                   {"recipe"},
                   {"bytes", true},
                   {"leases", true}});
  for (const v1::Model& model : models.models()) {
    table.AddRow({model.name(), StateText(model.state()), absl::StrCat(model.version()),
                  model.durable_version() == 0 ? "-" : absl::StrCat(model.durable_version()),
                  RecipeText(model.recipe()),
                  absl::StrCat(model.actual_bytes()), absl::StrCat(model.lease_count())});
  }
  return table.ToString();
}

}  // namespace planewise
