#ifndef PLANEWISE_CORE_GEMM_GEMM_PATH_H_
#define PLANEWISE_CORE_GEMM_GEMM_PATH_H_
// How a GEMM was computed, as responses and capabilities report it.

#include <cstdint>
#include <ostream>

#include "absl/strings/string_view.h"

namespace planewise {

// kNative: the device multiplies the stored codes. kExpanded: codes expanded
// exactly to BF16 (or F32 on a CPU without BF16 products). kExpandedFp32: to a
// wider type, where BF16 cannot hold the range. kHighPrecision: operands were
// not codes.
enum class GemmPath : uint8_t { kNative, kExpanded, kExpandedFp32, kHighPrecision };

absl::string_view Name(GemmPath path);  // native, expanded, expanded_fp32, high_precision
std::ostream& operator<<(std::ostream& out, GemmPath path);

}  // namespace planewise

#endif  // PLANEWISE_CORE_GEMM_GEMM_PATH_H_
