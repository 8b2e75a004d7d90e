#ifndef PLANEWISE_PLANNER_TEXT_TABLE_H_
#define PLANEWISE_PLANNER_TEXT_TABLE_H_
// Lines up rows of text in columns for a terminal: plain characters, two spaces
// between columns, no line longer than it must be.
//
// Not here: what the rows say.

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace planewise {

// Widths are counted in bytes: cells are ASCII.
class TextTable {
 public:
  struct Column {
    std::string title;
    bool right = false;  // aligned to the right, for numbers
  };

  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // Missing cells at the end are empty.
  void AddRow(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

  // Titles, then rows, each with a newline and without trailing spaces.
  std::string ToString() const;

 private:
  std::string Line(const std::vector<std::string>& cells, const std::vector<size_t>& widths) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace planewise

#endif  // PLANEWISE_PLANNER_TEXT_TABLE_H_
