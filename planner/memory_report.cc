#include "planner/memory_report.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "planner/text_table.h"

namespace planewise {
namespace {

std::string ShapeText(absl::Span<const int64_t> shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

std::string Number(int64_t value) { return absl::StrCat(value); }

std::string PlanesText(absl::Span<const PlaneLayout> planes) {
  return absl::StrJoin(planes, "+", [](std::string* out, const PlaneLayout& plane) {
    absl::StrAppend(out, Name(plane.kind));
  });
}

// What is true of every layer: the recipe, the options, the decision.
std::string Heading(const ModelPlan& plan) {
  const PlanOptions& options = plan.options;
  std::string text = absl::StrCat(
      plan.architecture, ": ", plan.layers.size(), " linear layers hosted, ",
      plan.totals.hosted_parameters, " parameters; ", plan.totals.local_parameters,
      " parameters stay with the trainer\n", "recipe ", options.recipe.ToString(),
      ", plane policy ", Name(options.policy),
      ", backward_enabled=", options.backward_enabled ? "true" : "false",
      ", trainable=", options.trainable ? "true" : "false", "\n");
  if (plan.layers.empty()) return text;
  const LayerPlan& layer = plan.layers.front();
  absl::StrAppend(&text, "planes: ", PlanesText(layer.planes), " (", layer.decision.why, ")\n");
  int64_t saved_bytes = 0;
  for (const LayerPlan& each : plan.layers) saved_bytes += each.decision.saved_bytes;
  if (saved_bytes > 0) {
    absl::StrAppend(&text, "against both planes this saves ", FormatBytes(saved_bytes), "\n");
  }
  for (const std::string& forbidden : layer.decision.forbids) {
    absl::StrAppend(&text, "forbids ", forbidden, "\n");
  }
  return text;
}

std::string TotalsTable(const ModelPlan& plan) {
  TextTable table({{"what"}, {"bytes", true}, {"size", true}, {"formula"}});
  for (const ReportRow& row : ReportRows(plan)) {
    table.AddRow({row.what, Number(row.bytes), FormatSize(row.bytes), row.formula});
  }
  return table.ToString();
}

std::string SavedTable(const ModelPlan& plan) {
  const SessionLoad& load = plan.options.load;
  if (!plan.options.trainable || !plan.options.backward_enabled) {
    return "saved operands: none of X, because dW is not wanted\n";
  }
  if (load.tokens == 0) return "";
  SavedOperandBytes sum;
  for (const LayerPlan& layer : plan.layers) {
    sum.none += layer.saved.none;
    sum.high_precision += layer.saved.high_precision;
    sum.dequantized += layer.saved.dequantized;
  }
  TextTable table({{absl::StrCat("saved operands of one session, ", load.tokens, " tokens")},
                   {"bytes", true},
                   {"bytes/token", true},
                   {"kept of X"}});
  const auto add = [&](BackwardOverride backward_override, absl::string_view kept) {
    const int64_t bytes = sum.Of(backward_override);
    table.AddRow({absl::StrCat("backward_override=", Name(backward_override)), Number(bytes),
                  Number((bytes + load.tokens - 1) / load.tokens), std::string(kept)});
  };
  if (!plan.options.recipe.quantized()) {
    add(BackwardOverride::kNone, "X itself");
    return table.ToString();
  }
  add(BackwardOverride::kNone, "column plane");
  add(BackwardOverride::kHighPrecision, "X itself");
  add(BackwardOverride::kDequantized, "row plane");
  return table.ToString();
}

// Tensors that stay for the same reason; one line if there are many.
struct LocalGroup {
  std::vector<const LocalTensorPlan*> tensors;
  int64_t source_bytes = 0;
};

std::string LocalTable(const ModelPlan& plan) {
  constexpr size_t kListedMax = 3;
  std::vector<LocalGroup> groups;
  for (const LocalTensorPlan& local : plan.local) {
    const auto same_why = [&local](const LocalGroup& group) {
      return group.tensors.front()->tensor.why == local.tensor.why;
    };
    auto group = absl::c_find_if(groups, same_why);
    if (group == groups.end()) group = groups.insert(groups.end(), LocalGroup{});
    group->tensors.push_back(&local);
    group->source_bytes += local.source_bytes;
  }
  TextTable table({{"stays with the trainer"}, {"shape"}, {"bytes", true}, {"why"}});
  for (const LocalGroup& group : groups) {
    const LocalTensor& first = group.tensors.front()->tensor;
    if (group.tensors.size() > kListedMax) {
      table.AddRow({absl::StrCat(group.tensors.size(), " tensors, the first: ", first.name), "",
                    Number(group.source_bytes), first.why});
      continue;
    }
    for (const LocalTensorPlan* local : group.tensors) {
      table.AddRow({local->tensor.name, ShapeText(local->tensor.shape),
                    Number(local->source_bytes), local->tensor.why});
    }
  }
  return table.ToString();
}

// Long texts of a table: a cell shows "[1]", the text follows below.
class Footnotes {
 public:
  std::string Mark(absl::string_view text) {
    auto found = absl::c_find(texts_, text);
    if (found == texts_.end()) found = texts_.insert(texts_.end(), std::string(text));
    return absl::StrCat("[", found - texts_.begin() + 1, "]");
  }

  std::string ToString() const {
    std::string all;
    for (size_t i = 0; i < texts_.size(); ++i) {
      absl::StrAppend(&all, "[", i + 1, "] ", texts_[i], "\n");
    }
    return all;
  }

 private:
  std::vector<std::string> texts_;
};

const char* BackwardText(const WhatIfCell& cell) {
  if (!cell.computes) return "hosted only";
  return cell.backward_runs ? "runs" : "refused";
}

// The sizes of plane_layout.h in words.
const char* PayloadFormula(Format format) {
  return format == Format::kNvfp4 ? "sum of out * in / 2" : "sum of out * in";
}

const char* ScaleFormula(const Recipe& recipe, PlaneKind kind) {
  const bool row = kind == PlaneKind::kRow;
  switch (recipe.format) {
    case Format::kMxfp8:
      return row ? "sum of up(out, 128) * up(in/32, 4)" : "sum of up(out/32, 4) * up(in, 128)";
    case Format::kNvfp4:
      return row ? "sum of up(out, 128) * up(in/16, 4)" : "sum of up(in, 128) * up(out/16, 4)";
    case Format::kFp8Block:
      if (recipe.weight_geometry == BlockGeometry::k1D) {
        return row ? "sum of 4 * in/128 * up(out, 4)" : "sum of 4 * out/128 * up(in, 4)";
      }
      return row ? "sum of 4 * out/128 * up(in/128, 4)" : "sum of 4 * in/128 * up(out/128, 4)";
    case Format::kFp8Current:
    case Format::kFp8Delayed:
      return "4 a weight";
    case Format::kNone:
      break;
  }
  return "";
}

std::string StateFormula(const Recipe& recipe) {
  if (recipe.format != Format::kFp8Delayed) return "4 a weight: its largest magnitude";
  return absl::StrCat("4 * (1 + ", recipe.amax_history_length,
                      ") a weight: scale and amax history");
}

}  // namespace

std::vector<ReportRow> ReportRows(const ModelPlan& plan) {
  const PlanTotals& totals = plan.totals;
  const SessionLoad& load = plan.options.load;
  std::vector<ReportRow> rows;
  const auto add = [&rows](std::string what, int64_t bytes, std::string formula) {
    if (bytes != 0) rows.push_back({std::move(what), bytes, std::move(formula)});
  };
  const auto sum = [&rows](std::string what, int64_t bytes, std::string formula) {
    rows.push_back({std::move(what), bytes, std::move(formula)});
  };
  const Recipe& recipe = plan.options.recipe;
  add("row plane: payload", totals.row.payload_bytes, PayloadFormula(recipe.format));
  add("row plane: scales", totals.row.scale_bytes, ScaleFormula(recipe, PlaneKind::kRow));
  add("row plane: state", totals.row.state_bytes, StateFormula(recipe));
  add("column plane: payload", totals.column.payload_bytes, PayloadFormula(recipe.format));
  add("column plane: scales", totals.column.scale_bytes, ScaleFormula(recipe, PlaneKind::kColumn));
  add("column plane: state", totals.column.state_bytes, StateFormula(recipe));
  const int nominal_bytes = FactsOf(plan.options.nominal).bits / 8;
  add("high-precision weights", totals.high_precision.total_bytes(),
      absl::StrCat("sum of out * in * ", nominal_bytes));
  add("bias", totals.bias_bytes, absl::StrCat("sum of out * ", nominal_bytes));
  sum("= persistent", totals.persistent_bytes, "the lines above");
  add("saved operands", totals.saved_operand_bytes,
      absl::StrCat(load.sessions, " sessions * kept of X at ", load.tokens, " tokens"));
  add("transport", totals.transport_bytes,
      absl::StrCat(load.sessions, " sessions * (", load.input_window_bytes, " window + ",
                   load.result_budget_bytes, " results)"));
  add("GEMM workspace", totals.gemm_workspace_bytes, "as given");
  sum("= while serving", totals.serving_bytes,
      "persistent + saved operands + transport + workspace");
  add("load peak (transient)", totals.load_peak_bytes,
      absl::StrCat("source + cast of ", plan.load_peak.tensor, ": ", plan.load_peak.source_bytes,
                   " + ", plan.load_peak.cast_bytes));
  sum("= while loading", totals.loading_bytes, "persistent + load peak");
  sum("= required", totals.required_bytes, "max(serving, loading)");
  add("local to the trainer", totals.local_bytes, "elements * source type; not counted above");
  return rows;
}

std::string PlanTable(const ModelPlan& plan) {
  std::string text = absl::StrCat(Heading(plan), "\n", TotalsTable(plan));
  const std::string saved = SavedTable(plan);
  if (!saved.empty()) absl::StrAppend(&text, "\n", saved);
  absl::StrAppend(&text, "\n", LocalTable(plan));
  return text;
}

std::string LayerTable(const ModelPlan& plan) {
  TextTable table({{"layer"},
                   {"shape"},
                   {"planes"},
                   {"payload", true},
                   {"scales", true},
                   {"bias", true},
                   {"total", true}});
  for (const LayerPlan& layer : plan.layers) {
    int64_t payload = 0;
    int64_t scales = 0;
    for (const PlaneLayout& plane : layer.planes) {
      payload += plane.payload_bytes;
      scales += plane.scale_bytes + plane.state_bytes;
    }
    table.AddRow({layer.name, ShapeText({layer.shape.out, layer.shape.in}),
                  PlanesText(layer.planes), Number(payload), Number(scales),
                  Number(layer.bias_bytes()), Number(layer.persistent_bytes())});
  }
  return table.ToString();
}

std::string WhatIfTable(absl::Span<const WhatIfCell> cells) {
  TextTable table({{"recipe"},
                   {"backward_override"},
                   {"plane policy"},
                   {"persistent", true},
                   {"saved operands", true},
                   {"load peak", true},
                   {"required", true},
                   {"backward"},
                   {"forbids"}});
  Footnotes notes;
  for (const WhatIfCell& cell : cells) {
    std::vector<std::string> row = {std::string(Name(cell.recipe.format)),
                                    std::string(Name(cell.recipe.backward_override)),
                                    std::string(Name(cell.policy))};
    if (cell.legal.ok()) {
      std::string marks;
      for (const std::string& forbidden : cell.forbids) marks += notes.Mark(forbidden);
      row.insert(row.end(), {Number(cell.persistent_bytes), Number(cell.saved_operand_bytes),
                             Number(cell.load_peak_bytes), Number(cell.required_bytes),
                             BackwardText(cell), std::move(marks)});
    } else {
      row.insert(row.end(), {"-", "-", "-", "-", "not legal", notes.Mark(cell.legal.message())});
    }
    table.AddRow(std::move(row));
  }
  return table.ToString() + notes.ToString();
}

std::string FitText(const FitReport& report) {
  if (report.fits) {
    return absl::StrCat("fits: needs ", FormatBytes(report.required_bytes), " of ",
                        FormatBytes(report.limit_bytes), "\n");
  }
  std::string text = absl::StrCat("does not fit: needs ", FormatBytes(report.required_bytes),
                                  ", available ", FormatBytes(report.limit_bytes), ", short of ",
                                  FormatBytes(report.short_bytes), "\n");
  for (const FittingChoice& choice : report.choices) {
    absl::StrAppend(&text, "would fit: ", choice.change, " (",
                    FormatBytes(choice.required_bytes), ")");
    if (!choice.forbids.empty()) {
      absl::StrAppend(&text, "; forbids ", absl::StrJoin(choice.forbids, "; "));
    }
    absl::StrAppend(&text, "\n");
  }
  if (report.choices.empty()) text += "nothing else that could be chosen fits\n";
  return text;
}

std::string FormatSize(int64_t bytes) {
  constexpr absl::string_view kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes > -1024 && bytes < 1024) return absl::StrCat(bytes, " B");
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while ((value >= 1024 || value <= -1024) && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return absl::StrFormat("%.2f %s", value, kUnits[unit]);
}

std::string FormatBytes(int64_t bytes) {
  const std::string size = FormatSize(bytes);
  if (bytes > -1024 && bytes < 1024) return size;
  return absl::StrCat(size, " (", bytes, " B)");
}

}  // namespace planewise
