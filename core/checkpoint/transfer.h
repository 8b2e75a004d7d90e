#ifndef PLANEWISE_CORE_CHECKPOINT_TRANSFER_H_
#define PLANEWISE_CORE_CHECKPOINT_TRANSFER_H_
// Progress of a long read or write, and a way to give it up.

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace planewise {

struct TransferProgress {
  int64_t done_bytes = 0;
  int64_t total_bytes = 0;
  absl::string_view object;  // the tensor at work; valid during the call
};

struct TransferControl {
  // Called on the transferring thread, at least once per tensor and about once
  // per kTransferBytes. May be empty.
  std::function<void(const TransferProgress&)> on_progress;
  // Once true, the transfer ends with CANCELLED and leaves nothing behind. May
  // be nullptr.
  const std::atomic<bool>* cancel = nullptr;
};

// Counts a transfer and reports it. One thread.
class TransferMeter {
 public:
  // `what` names the transfer in the error of a cancelled one, for example
  // `save of model "a"`.
  TransferMeter(TransferControl control, std::string what, int64_t total_bytes)
      : control_(std::move(control)), what_(std::move(what)), total_bytes_(total_bytes) {}

  // `bytes` more of `object` are done. CANCELLED if the caller gave up.
  absl::Status Advance(absl::string_view object, int64_t bytes);

 private:
  const TransferControl control_;
  const std::string what_;
  const int64_t total_bytes_;
  int64_t done_bytes_ = 0;
};

}  // namespace planewise

#endif  // PLANEWISE_CORE_CHECKPOINT_TRANSFER_H_
