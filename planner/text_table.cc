#include "planner/text_table.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace planewise {

std::string TextTable::ToString() const {
  std::vector<std::string> titles;
  for (const Column& column : columns_) titles.push_back(column.title);
  std::vector<size_t> widths(columns_.size());
  const auto widen = [&widths](const std::vector<std::string>& cells) {
    for (size_t i = 0; i < cells.size(); ++i) widths[i] = std::max(widths[i], cells[i].size());
  };
  widen(titles);
  for (const auto& row : rows_) widen(row);
  std::string text = Line(titles, widths);
  for (const auto& row : rows_) absl::StrAppend(&text, Line(row, widths));
  return text;
}

std::string TextTable::Line(const std::vector<std::string>& cells,
                            const std::vector<size_t>& widths) const {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) {
    const std::string padding(widths[i] - cells[i].size(), ' ');
    if (i > 0) line += "  ";
    line += columns_[i].right ? padding + cells[i] : cells[i] + padding;
  }
  absl::StripTrailingAsciiWhitespace(&line);
  return line + "\n";
}

}  // namespace planewise
