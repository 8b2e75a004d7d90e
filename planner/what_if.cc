#include "planner/what_if.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "core/layer/linear_gemms.h"
#include "core/recipe/recipe_check.h"
#include "planner/plane_decision.h"

namespace planewise {
namespace {

constexpr BackwardOverride kOverrides[] = {
    BackwardOverride::kNone, BackwardOverride::kHighPrecision, BackwardOverride::kDequantized};
constexpr PlanePolicy kPolicies[] = {PlanePolicy::kAuto, PlanePolicy::kBoth,
                                     PlanePolicy::kRowOnly};

// Choices that a shortfall offers beside fewer sessions and tokens.
constexpr size_t kMatrixChoicesMax = 4;

WhatIfCell CellOf(const TensorInventory& inventory, const PlanOptions& options) {
  WhatIfCell cell;
  cell.recipe = options.recipe;
  cell.policy = options.policy;
  const absl::StatusOr<ModelPlan> plan = PlanModel(inventory, options);
  cell.legal = plan.status();
  if (!plan.ok()) return cell;
  cell.persistent_bytes = plan->totals.persistent_bytes;
  cell.saved_operand_bytes = plan->totals.saved_operand_bytes;
  cell.load_peak_bytes = plan->totals.load_peak_bytes;
  cell.required_bytes = plan->totals.required_bytes;
  cell.computes = ComputesLinear(options.recipe);
  // The decision is the same for every layer but for its bytes.
  if (plan->layers.empty()) return cell;
  const PlaneDecision& decision = plan->layers.front().decision;
  cell.forbids = decision.forbids;
  cell.backward_runs =
      cell.computes && options.backward_enabled &&
      (decision.column || !BackwardReadsColumn(options.recipe) ||
       ColumnDerivableFromRow(options.recipe.format, options.recipe.weight_geometry));
  return cell;
}

// A cell, and the fields in which it differs from the plan asked for.
struct Difference {
  std::vector<std::string> fields;
  WhatIfCell cell;
};

Difference Compare(const WhatIfCell& cell, const PlanOptions& options) {
  Difference difference{{}, cell};
  if (cell.recipe.format != options.recipe.format) {
    difference.fields.push_back(absl::StrCat("recipe=", Name(cell.recipe.format)));
  }
  if (cell.recipe.backward_override != options.recipe.backward_override) {
    difference.fields.push_back(
        absl::StrCat("backward_override=", Name(cell.recipe.backward_override)));
  }
  if (cell.policy != options.policy) {
    difference.fields.push_back(absl::StrCat("plane_policy=", Name(cell.policy)));
  }
  return difference;
}

std::vector<FittingChoice> MatrixChoices(const TensorInventory& inventory,
                                         const PlanOptions& options, int64_t limit_bytes) {
  std::vector<Difference> fitting;
  for (const WhatIfCell& cell : WhatIf(inventory, options)) {
    if (!cell.legal.ok() || cell.required_bytes > limit_bytes) continue;
    // Who hosts a format that is not computed with asked for it.
    if (cell.recipe.format != options.recipe.format && !cell.computes) continue;
    if (options.backward_enabled && cell.computes && !cell.backward_runs) continue;
    fitting.push_back(Compare(cell, options));
  }
  // Fewest changes first; among those the one that gives up least.
  absl::c_stable_sort(fitting, [](const Difference& a, const Difference& b) {
    if (a.fields.size() != b.fields.size()) return a.fields.size() < b.fields.size();
    return a.cell.required_bytes > b.cell.required_bytes;
  });
  std::vector<FittingChoice> choices;
  std::vector<std::pair<Recipe, int64_t>> offered;
  for (Difference& difference : fitting) {
    const WhatIfCell& cell = difference.cell;
    // A further change that saves nothing is no choice.
    const std::pair<Recipe, int64_t> offer(cell.recipe, cell.required_bytes);
    if (absl::c_linear_search(offered, offer)) continue;
    if (choices.size() == kMatrixChoicesMax) break;
    offered.push_back(offer);
    choices.push_back({absl::StrJoin(difference.fields, ", "), cell.required_bytes,
                       std::move(difference.cell.forbids)});
  }
  return choices;
}

// The largest load that fits when one of its numbers is lowered; nullopt if
// even 0 does not. Bytes grow with the number.
std::optional<FittingChoice> Lower(const TensorInventory& inventory, const PlanOptions& options,
                                   int64_t limit_bytes, int64_t SessionLoad::*number,
                                   absl::string_view name) {
  PlanOptions tried = options;
  const auto required = [&](int64_t value) {
    tried.load.*number = value;
    return PlanModel(inventory, tried)->totals.required_bytes;
  };
  int64_t fits = 0;
  int64_t too_many = options.load.*number;
  if (too_many == 0 || required(0) > limit_bytes) return std::nullopt;
  while (too_many - fits > 1) {
    const int64_t middle = fits + (too_many - fits) / 2;
    (required(middle) <= limit_bytes ? fits : too_many) = middle;
  }
  return FittingChoice{absl::StrCat(name, "=", fits), required(fits), {}};
}

}  // namespace

std::vector<WhatIfCell> WhatIf(const TensorInventory& inventory, const PlanOptions& options) {
  std::vector<WhatIfCell> cells;
  for (const Format format : HostableFormats()) {
    for (const BackwardOverride backward_override : kOverrides) {
      for (const PlanePolicy policy : kPolicies) {
        PlanOptions cell = options;
        // Fields that another format does not share keep that format's defaults.
        if (format != options.recipe.format) cell.recipe = DefaultRecipe(format);
        cell.recipe.backward_override = backward_override;
        cell.policy = policy;
        cells.push_back(CellOf(inventory, cell));
      }
    }
  }
  return cells;
}

absl::StatusOr<FitReport> CheckFit(const TensorInventory& inventory, const PlanOptions& options,
                                   int64_t limit_bytes) {
  PW_ASSIGN_OR_RETURN(const ModelPlan plan, PlanModel(inventory, options));
  FitReport report;
  report.required_bytes = plan.totals.required_bytes;
  report.limit_bytes = limit_bytes;
  report.fits = report.required_bytes <= limit_bytes;
  if (report.fits) return report;
  report.short_bytes = report.required_bytes - limit_bytes;
  report.choices = MatrixChoices(inventory, options, limit_bytes);
  const std::optional<FittingChoice> fewer_sessions =
      Lower(inventory, options, limit_bytes, &SessionLoad::sessions, "sessions");
  if (fewer_sessions.has_value()) report.choices.push_back(*fewer_sessions);
  if (options.load.sessions > 0) {
    const std::optional<FittingChoice> fewer_tokens =
        Lower(inventory, options, limit_bytes, &SessionLoad::tokens, "tokens");
    if (fewer_tokens.has_value()) report.choices.push_back(*fewer_tokens);
  }
  return report;
}

absl::Status FitStatus(const FitReport& report, absl::string_view what) {
  if (report.fits) return absl::OkStatus();
  std::string message = absl::StrCat(what, ": needs ", report.required_bytes, " bytes, ",
                                     report.limit_bytes, " are available (short of ",
                                     report.short_bytes, ")");
  if (report.choices.empty()) {
    absl::StrAppend(&message, "; no other recipe, override or policy fits");
  } else {
    absl::StrAppend(&message, "; would fit: ",
                    absl::StrJoin(report.choices, "; ",
                                  [](std::string* out, const FittingChoice& choice) {
                                    absl::StrAppend(out, choice.change, " (",
                                                    choice.required_bytes, " bytes)");
                                  }));
  }
  return Error(Reason::kMemoryShortfall, message)
      .With("requiredBytes", report.required_bytes)
      .With("availableBytes", report.limit_bytes)
      .With("bytesShort", report.short_bytes);
}

}  // namespace planewise
