#include "planner/plane_decision.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/recipe/recipe_check.h"

namespace planewise {
namespace {

constexpr char kColumnRead[] = " reads the column plane in dgrad";

struct Choice {
  bool column = false;
  std::string why;
};

Choice ChooseAuto(const PlaneQuestion& question) {
  if (!question.backward_enabled) return {false, "AUTO: backward_enabled=false, only fprop runs"};
  const BackwardOverride now = question.recipe.backward_override;
  if (now == BackwardOverride::kNone) {
    return {true, absl::StrCat("AUTO: backward_override=none", kColumnRead)};
  }
  if (absl::c_linear_search(question.future_modes, BackwardOverride::kNone)) {
    return {true, absl::StrCat("AUTO: the declared future mode backward_override=none",
                               kColumnRead)};
  }
  return {false, absl::StrCat("AUTO: under backward_override=", Name(now),
                              " every GEMM reads the row plane")};
}

Choice Choose(const PlaneQuestion& question) {
  switch (question.policy) {
    case PlanePolicy::kAuto: return ChooseAuto(question);
    case PlanePolicy::kBoth: return {true, "BOTH: asked for"};
    case PlanePolicy::kRowOnly: return {false, "ROW_ONLY: asked for"};
  }
  return {};
}

std::vector<std::string> Forbidden(const PlaneQuestion& question, bool column) {
  std::vector<std::string> forbids;
  const Recipe& recipe = question.recipe;
  if (!question.backward_enabled) forbids.push_back("any backward: backward_enabled=false");
  if (recipe.quantized() && !column &&
      !ColumnDerivableFromRow(recipe.format, recipe.weight_geometry)) {
    forbids.push_back(
        "backward_override=none: its dgrad reads the column plane, which only master weights or "
        "the source checkpoint can give");
  }
  return forbids;
}

}  // namespace

bool BackwardReadsColumn(const Recipe& recipe) {
  return recipe.quantized() && recipe.backward_override == BackwardOverride::kNone;
}

absl::StatusOr<PlaneDecision> DecidePlanes(const PlaneQuestion& question) {
  if (!question.recipe.quantized()) {
    return RecordPlanes(question, false, "high precision: the matrix itself serves every GEMM");
  }
  Choice choice = Choose(question);
  return RecordPlanes(question, choice.column, std::move(choice.why));
}

absl::StatusOr<PlaneDecision> RecordPlanes(const PlaneQuestion& question, bool column,
                                           std::string why) {
  PlaneDecision decision;
  decision.policy = question.policy;
  decision.row = true;
  decision.column = column;
  decision.why = std::move(why);
  decision.forbids = Forbidden(question, column);
  const Recipe& recipe = question.recipe;
  if (recipe.quantized() && !column) {
    PW_ASSIGN_OR_RETURN(const PlaneLayout saved,
                        WeightPlaneLayout(recipe, PlaneKind::kColumn, question.shape,
                                          question.nominal));
    decision.saved_bytes = saved.total_bytes();
  }
  return decision;
}

absl::StatusOr<std::vector<PlaneLayout>> LayoutsOf(const PlaneDecision& decision,
                                                   const Recipe& recipe, MatrixShape shape,
                                                   DType nominal) {
  std::vector<PlaneKind> kinds;
  if (!recipe.quantized()) {
    kinds.push_back(PlaneKind::kHighPrecision);
  } else {
    if (decision.row) kinds.push_back(PlaneKind::kRow);
    if (decision.column) kinds.push_back(PlaneKind::kColumn);
  }
  std::vector<PlaneLayout> layouts;
  for (const PlaneKind kind : kinds) {
    PW_ASSIGN_OR_RETURN(layouts.emplace_back(),
                        WeightPlaneLayout(recipe, kind, shape, nominal));
  }
  return layouts;
}

int64_t TotalBytes(absl::Span<const PlaneLayout> planes) {
  int64_t sum = 0;
  for (const PlaneLayout& plane : planes) sum += plane.total_bytes();
  return sum;
}

}  // namespace planewise
