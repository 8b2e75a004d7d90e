#ifndef PLANEWISE_PLANNER_PLAN_JSON_H_
#define PLANEWISE_PLANNER_PLAN_JSON_H_
// A plan for programs: the JSON that PLAN_JSON.md specifies.
//
// Not here: tables for people (memory_report.h).

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "planner/memory_model.h"
#include "planner/what_if.h"

namespace planewise {

// Names the schema; a change that breaks a reader makes a new one.
inline constexpr absl::string_view kPlanSchema = "planewise.plan/1";

// What goes out beside the plan.
struct PlanJsonParts {
  std::optional<FitReport> fit;
  std::vector<WhatIfCell> what_if;  // empty: left out
};

// Indented by two, with a final newline.
std::string PlanJson(const ModelPlan& plan, const PlanJsonParts& parts);

}  // namespace planewise

#endif  // PLANEWISE_PLANNER_PLAN_JSON_H_
