#include "core/checkpoint/transfer.h"

#include "absl/strings/str_cat.h"
#include "core/base/error.h"

namespace planewise {

absl::Status TransferMeter::Advance(absl::string_view object, int64_t bytes) {
  done_bytes_ += bytes;
  if (control_.on_progress) control_.on_progress({done_bytes_, total_bytes_, object});
  if (control_.cancel != nullptr && control_.cancel->load(std::memory_order_relaxed)) {
    return Error(Reason::kCancelled, absl::StrCat(what_, " was given up after ", done_bytes_,
                                                  " of ", total_bytes_, " bytes"));
  }
  return absl::OkStatus();
}

}  // namespace planewise
