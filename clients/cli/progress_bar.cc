#include "clients/cli/progress_bar.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/memory_report.h"

namespace planewise {
namespace {

constexpr int kBarCells = 24;

int TerminalColumns() {
  if (isatty(STDERR_FILENO) == 0) return 0;
  winsize size = {};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

}  // namespace

std::string ProgressLine(absl::string_view stage, absl::string_view object, int64_t done_bytes,
                         int64_t total_bytes, int columns) {
  if (total_bytes == kTotalUnknown) {
    std::string line =
        absl::StrFormat("%-9s %s so far  %s", stage, FormatSize(done_bytes), object);
    return line.substr(0, static_cast<size_t>(columns));
  }
  // Work of no bytes is done.
  const double share =
      total_bytes > 0 ? std::clamp(static_cast<double>(done_bytes) / total_bytes, 0.0, 1.0) : 1.0;
  const int filled = static_cast<int>(share * kBarCells);
  std::string line = absl::StrFormat(
      "%-9s [%s%s] %3d%%  %s of %s  %s", stage, std::string(filled, '#'),
      std::string(kBarCells - filled, ' '), static_cast<int>(share * 100), FormatSize(done_bytes),
      FormatSize(total_bytes), object);
  if (line.size() > static_cast<size_t>(columns)) line.resize(static_cast<size_t>(columns));
  return line;
}

ProgressBar::ProgressBar() : columns_(TerminalColumns()) {}

ProgressBar::~ProgressBar() {
  // Back to the start of the line, and erase to its end.
  if (!shown_.empty()) std::fputs("\r\x1b[K", stderr);
}

void ProgressBar::Show(absl::string_view stage, absl::string_view object, int64_t done_bytes,
                       int64_t total_bytes) {
  if (columns_ == 0) return;
  // One column is left free: a full line would wrap.
  std::string line = ProgressLine(stage, object, done_bytes, total_bytes, columns_ - 1);
  if (line == shown_) return;
  shown_ = std::move(line);
  std::fputs(absl::StrCat("\r\x1b[K", shown_).c_str(), stderr);
  std::fflush(stderr);
}

}  // namespace planewise
