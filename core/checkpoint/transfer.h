#ifndef PLANEWISE_CORE_CHECKPOINT_TRANSFER_H_
#define PLANEWISE_CORE_CHECKPOINT_TRANSFER_H_
// Progress of a long read or write, and a way to give it up.

#include <atomic>
#include <cstdint>
#include <functional>

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

}  // namespace planewise

#endif  // PLANEWISE_CORE_CHECKPOINT_TRANSFER_H_
