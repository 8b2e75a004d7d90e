#include "planner/plan_json.h"

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "planner/memory_report.h"

namespace planewise {
namespace {

using Json = nlohmann::ordered_json;

std::string Text(absl::string_view text) { return std::string(text); }

Json ToJson(const Recipe& recipe) {
  Json json = {{"format", Text(Name(recipe.format))},
               {"backward_override", Text(Name(recipe.backward_override))},
               {"fp8_format", Text(Name(recipe.fp8_format))},
               {"weight_geometry", Text(Name(recipe.weight_geometry))}};
  const auto add = [&](RecipeField field, auto value) {
    if (HasField(recipe.format, field)) json[Text(Name(field))] = value;
  };
  add(RecipeField::kPowerOfTwoScales, recipe.power_of_two_scales);
  add(RecipeField::kAmaxEpsilon, recipe.amax_epsilon);
  add(RecipeField::kMargin, recipe.margin);
  add(RecipeField::kAmaxHistoryLength, recipe.amax_history_length);
  add(RecipeField::kAmaxAlgorithm, Text(Name(recipe.amax_algorithm)));
  add(RecipeField::kHadamard, recipe.hadamard);
  add(RecipeField::kStochasticRounding, recipe.stochastic_rounding);
  json["fingerprint"] = absl::StrCat(absl::Hex(recipe.Fingerprint(), absl::kZeroPad16));
  return json;
}

Json ToJson(const SessionLoad& load) {
  return {{"sessions", load.sessions},
          {"tokens", load.tokens},
          {"input_window_bytes", load.input_window_bytes},
          {"result_budget_bytes", load.result_budget_bytes},
          {"gemm_workspace_bytes", load.gemm_workspace_bytes}};
}

Json ToJson(const PlanOptions& options) {
  Json future_modes = Json::array();
  for (const BackwardOverride mode : options.future_modes) {
    future_modes.push_back(Text(Name(mode)));
  }
  return {{"recipe", ToJson(options.recipe)},
          {"plane_policy", Text(Name(options.policy))},
          {"backward_enabled", options.backward_enabled},
          {"trainable", options.trainable},
          {"future_modes", std::move(future_modes)},
          {"nominal_dtype", Text(Name(options.nominal))},
          {"activation_dtype", Text(Name(options.activation))},
          {"load", ToJson(options.load)}};
}

Json ToJson(const PlaneTotals& totals) {
  return {{"payload_bytes", totals.payload_bytes},
          {"scale_bytes", totals.scale_bytes},
          {"state_bytes", totals.state_bytes}};
}

Json ToJson(const PlanTotals& totals) {
  return {{"row", ToJson(totals.row)},
          {"column", ToJson(totals.column)},
          {"high_precision", ToJson(totals.high_precision)},
          {"bias_bytes", totals.bias_bytes},
          {"persistent_bytes", totals.persistent_bytes},
          {"saved_operand_bytes", totals.saved_operand_bytes},
          {"transport_bytes", totals.transport_bytes},
          {"gemm_workspace_bytes", totals.gemm_workspace_bytes},
          {"serving_bytes", totals.serving_bytes},
          {"load_peak_bytes", totals.load_peak_bytes},
          {"loading_bytes", totals.loading_bytes},
          {"required_bytes", totals.required_bytes},
          {"local_bytes", totals.local_bytes},
          {"hosted_parameters", totals.hosted_parameters},
          {"local_parameters", totals.local_parameters},
          {"source_bytes", totals.source_bytes}};
}

Json ToJson(const PlaneDecision& decision) {
  return {{"policy", Text(Name(decision.policy))},
          {"row", decision.row},
          {"column", decision.column},
          {"why", decision.why},
          {"saved_bytes", decision.saved_bytes},
          {"forbids", decision.forbids}};
}

Json ToJson(const PlaneLayout& plane) {
  return {{"plane", Text(Name(plane.kind))},
          {"payload_dtype", Text(Name(plane.payload_dtype))},
          {"payload_shape", {plane.payload_rows, plane.payload_columns}},
          {"payload_bytes", plane.payload_bytes},
          {"scale_dtype", plane.scale_bytes > 0 ? Json(Text(Name(plane.scale_dtype))) : Json()},
          {"scale_shape", {plane.scale_rows, plane.scale_columns}},
          {"scale_bytes", plane.scale_bytes},
          {"state_bytes", plane.state_bytes}};
}

Json ToJson(const LayerPlan& layer) {
  Json planes = Json::array();
  for (const PlaneLayout& plane : layer.planes) planes.push_back(ToJson(plane));
  return {{"name", layer.name},
          {"weight", layer.weight},
          {"shape", {layer.shape.out, layer.shape.in}},
          {"source_dtype", Text(Name(layer.source_dtype))},
          {"decision", ToJson(layer.decision)},
          {"planes", std::move(planes)},
          {"bias_bytes", layer.bias_bytes()},
          {"persistent_bytes", layer.persistent_bytes()},
          {"saved_operand_bytes",
           {{"none", layer.saved.none},
            {"high_precision", layer.saved.high_precision},
            {"dequantized", layer.saved.dequantized}}}};
}

Json ToJson(const LocalTensorPlan& local) {
  return {{"name", local.tensor.name},
          {"shape", local.tensor.shape},
          {"source_bytes", local.source_bytes},
          {"why", local.tensor.why}};
}

Json ToJson(const FitReport& fit) {
  Json choices = Json::array();
  for (const FittingChoice& choice : fit.choices) {
    choices.push_back({{"change", choice.change},
                       {"required_bytes", choice.required_bytes},
                       {"forbids", choice.forbids}});
  }
  return {{"fits", fit.fits},
          {"required_bytes", fit.required_bytes},
          {"limit_bytes", fit.limit_bytes},
          {"short_bytes", fit.short_bytes},
          {"choices", std::move(choices)}};
}

Json ToJson(const WhatIfCell& cell) {
  Json json = {{"recipe", ToJson(cell.recipe)}, {"plane_policy", Text(Name(cell.policy))}};
  if (!cell.legal.ok()) {
    json["refused"] = Text(cell.legal.message());
    return json;
  }
  json.update({{"persistent_bytes", cell.persistent_bytes},
               {"saved_operand_bytes", cell.saved_operand_bytes},
               {"load_peak_bytes", cell.load_peak_bytes},
               {"required_bytes", cell.required_bytes},
               {"computes", cell.computes},
               {"backward_runs", cell.backward_runs},
               {"forbids", cell.forbids}});
  return json;
}

template <typename T>
Json ToJsonList(const std::vector<T>& values) {
  Json list = Json::array();
  for (const T& value : values) list.push_back(ToJson(value));
  return list;
}

Json RowsJson(const ModelPlan& plan) {
  Json rows = Json::array();
  for (const ReportRow& row : ReportRows(plan)) {
    rows.push_back({{"what", row.what}, {"bytes", row.bytes}, {"formula", row.formula}});
  }
  return rows;
}

}  // namespace

std::string PlanJson(const ModelPlan& plan, const PlanJsonParts& parts) {
  Json json = {{"schema", Text(kPlanSchema)},
               {"architecture", plan.architecture},
               {"options", ToJson(plan.options)},
               {"totals", ToJson(plan.totals)},
               {"rows", RowsJson(plan)},
               {"load_peak",
                {{"tensor", plan.load_peak.tensor},
                 {"source_bytes", plan.load_peak.source_bytes},
                 {"cast_bytes", plan.load_peak.cast_bytes}}},
               {"layers", ToJsonList(plan.layers)},
               {"local", ToJsonList(plan.local)}};
  if (parts.fit.has_value()) json["fit"] = ToJson(*parts.fit);
  if (!parts.what_if.empty()) json["what_if"] = ToJsonList(parts.what_if);
  // Names come from files: bytes that are not UTF-8 are replaced, not thrown on.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace planewise
