#ifndef PLANEWISE_PLANNER_MEMORY_REPORT_H_
#define PLANEWISE_PLANNER_MEMORY_REPORT_H_
// A plan for people, as a table with the formula of every row, and for
// programs, as the JSON of PLAN_JSON.md.
//
// Not here: the numbers (memory_model.h, what_if.h).

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "planner/memory_model.h"
#include "planner/what_if.h"

namespace planewise {

struct ReportRow {
  std::string what;     // for example "column plane: scales"
  int64_t bytes = 0;
  std::string formula;  // for example "sum of up(out/32, 4) * up(in, 128)"
};

// One row per line of the totals.
std::vector<ReportRow> ReportRows(const ModelPlan& plan);

// What goes into a report beside the plan.
struct ReportParts {
  std::optional<FitReport> fit;
  std::vector<WhatIfCell> what_if;  // empty: left out
  bool layers = true;               // one line per layer
};

// Plain text, columns aligned; sizes in bytes and GiB (2^30).
std::string PlanTable(const ModelPlan& plan, const ReportParts& parts);

// One line per cell of the matrix.
std::string WhatIfTable(absl::Span<const WhatIfCell> cells);

// PLAN_JSON.md, indented by two, with a final newline.
std::string PlanJson(const ModelPlan& plan, const ReportParts& parts);

// For example "33.00 MiB (34603008 B)"; B, KiB, MiB, GiB and TiB are powers of 1024.
std::string FormatBytes(int64_t bytes);

}  // namespace planewise

#endif  // PLANEWISE_PLANNER_MEMORY_REPORT_H_
