#ifndef PLANEWISE_CORE_BASE_STRICT_JSON_H_
#define PLANEWISE_CORE_BASE_STRICT_JSON_H_
// Parses a small JSON text that may be hostile: nesting is capped and a key
// that appears twice is refused, because readers differ in which one counts.
// A NUL or a byte-order mark is refused too.
//
// Not here: what the keys mean.

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace planewise {

// INVALID_ARGUMENT / INVALID_CHECKPOINT, with `what` (for example
// "config.json"), position and cause.
absl::StatusOr<nlohmann::json> ParseStrictJson(absl::string_view text, int depth_max,
                                               absl::string_view what);

}  // namespace planewise

#endif  // PLANEWISE_CORE_BASE_STRICT_JSON_H_
