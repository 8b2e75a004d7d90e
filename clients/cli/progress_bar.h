#ifndef PLANEWISE_CLIENTS_CLI_PROGRESS_BAR_H_
#define PLANEWISE_CLIENTS_CLI_PROGRESS_BAR_H_
// A line that shows how far long work has come. Drawn on stderr, and only where
// that is a terminal: logs and pipes stay clean.

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace planewise {

// As total_bytes: nobody has said how much there is.
inline constexpr int64_t kTotalUnknown = -1;

// "quantize  [#########           ]  45%  1.2 GiB of 2.7 GiB  encoder.layer.3..." in at most
// `columns` characters; without a total, "read      1.2 GiB so far  encoder.layer.3...".
std::string ProgressLine(absl::string_view stage, absl::string_view object, int64_t done_bytes,
                         int64_t total_bytes, int columns);

// One thread. The destructor clears the line.
class ProgressBar {
 public:
  ProgressBar();
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void Show(absl::string_view stage, absl::string_view object, int64_t done_bytes,
            int64_t total_bytes);

 private:
  int columns_ = 0;  // 0: not a terminal
  std::string shown_;
};

}  // namespace planewise

#endif  // PLANEWISE_CLIENTS_CLI_PROGRESS_BAR_H_
