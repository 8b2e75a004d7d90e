#include "core/checkpoint/damage.h"

#include "absl/strings/str_cat.h"

namespace planewise {

Error Damage(Reason reason, absl::string_view path, int64_t offset, absl::string_view text) {
  return Error(reason, absl::StrCat("\"", path, "\" is damaged at byte ", offset, ": ", text))
      .With("file", path)
      .With("byteOffset", offset);
}

}  // namespace planewise
