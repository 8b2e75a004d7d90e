#ifndef PLANEWISE_CORE_BASE_BYTE_SIZE_H_
#define PLANEWISE_CORE_BASE_BYTE_SIZE_H_
// Sizes as people write them in flags: a whole number and a unit. The unit is
// required, because "8" says nothing and GiB (2^30) is not GB (10^9).

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace planewise {

// "512MiB", "8 GiB", "100GB", "4096B". Units: B, KiB, MiB, GiB, TiB (powers of
// 1024) and KB, MB, GB, TB (powers of 1000). INVALID_ARGUMENT that lists them.
absl::StatusOr<int64_t> ParseByteSize(absl::string_view text);

// Shortest exact form that ParseByteSize reads: "64MiB", "1000B".
std::string ByteSizeText(int64_t size_bytes);

}  // namespace planewise

#endif  // PLANEWISE_CORE_BASE_BYTE_SIZE_H_
