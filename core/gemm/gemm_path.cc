#include "core/gemm/gemm_path.h"

namespace planewise {

absl::string_view Name(GemmPath path) {
  switch (path) {
    case GemmPath::kNative: return "native";
    case GemmPath::kExpanded: return "expanded";
    case GemmPath::kExpandedFp32: return "expanded_fp32";
    case GemmPath::kHighPrecision: return "high_precision";
  }
  return "invalid";
}

std::ostream& operator<<(std::ostream& out, GemmPath path) { return out << Name(path); }

}  // namespace planewise
