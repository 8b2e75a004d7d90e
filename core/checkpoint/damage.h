#ifndef PLANEWISE_CORE_CHECKPOINT_DAMAGE_H_
#define PLANEWISE_CORE_CHECKPOINT_DAMAGE_H_
// The error for stored bytes that are not the ones that were written.

#include <cstdint>

#include "absl/strings/string_view.h"
#include "core/base/error.h"

namespace planewise {

// DATA_LOSS with `file` and `byteOffset`. `reason` is CHECKSUM_MISMATCH or
// CORRUPT_FILE; `offset` is where the bytes in question begin.
Error Damage(Reason reason, absl::string_view path, int64_t offset, absl::string_view text);

}  // namespace planewise

#endif  // PLANEWISE_CORE_CHECKPOINT_DAMAGE_H_
