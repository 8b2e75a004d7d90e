#ifndef PLANEWISE_PLANNER_MEMORY_REPORT_H_
#define PLANEWISE_PLANNER_MEMORY_REPORT_H_
// A plan for people: tables with the formula of every row.
//
// Not here: the numbers (memory_model.h, what_if.h); the plan for programs
// (plan_json.h).

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "planner/memory_model.h"
#include "planner/what_if.h"

namespace planewise {

// A line of the totals, for example {"column plane: scales", 524288,
// "sum of up(out/32, 4) * up(in, 128)"}.
struct ReportRow {
  std::string what;
  int64_t bytes = 0;
  std::string formula;
};

// One row per line of the totals that is not 0, sums always; in the order in
// which they add up.
std::vector<ReportRow> ReportRows(const ModelPlan& plan);

// Head line, decision, totals with formulas, saved operands per override, and
// what stays with the trainer.
std::string PlanTable(const ModelPlan& plan);

// One line per layer.
std::string LayerTable(const ModelPlan& plan);

// One line per cell of the matrix, and below it what [1], [2], ... stand for.
std::string WhatIfTable(absl::Span<const WhatIfCell> cells);

// Whether it fits; if not, the shortfall and the choices that do.
std::string FitText(const FitReport& report);

// For example "33.00 MiB (34603008 B)" or "512 B". KiB to TiB are powers of
// 1024.
std::string FormatBytes(int64_t bytes);

// For example "33.00 MiB".
std::string FormatSize(int64_t bytes);

}  // namespace planewise

#endif  // PLANEWISE_PLANNER_MEMORY_REPORT_H_
