#ifndef PLANEWISE_CORE_NUMERIC_DTYPE_H_
#define PLANEWISE_CORE_NUMERIC_DTYPE_H_
// The list of element types: the only one in the tree. Names are those of
// safetensors, so that a header's "dtype" parses without a second table.
//
// Not here: the arithmetic of a format (one file per format beside this one).

#include <cstdint>
#include <optional>
#include <ostream>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace planewise {

// In safetensors' order, which is ascending alignment.
enum class DType : uint8_t {
  kBool,
  kF4E2M1,  // two elements a byte, even index in the low nibble
  kU8,
  kI8,
  kF8E5M2,
  kF8E4M3,  // e4m3fn: no infinity, NaN = S.1111.111
  kF8E8M0,
  kI16,
  kU16,
  kF16,
  kBF16,
  kI32,
  kU32,
  kF32,
  kF64,
  kI64,
  kU64,
};

struct DTypeFacts {
  DType dtype;
  absl::string_view name;  // as in safetensors
  int bits;
};

absl::Span<const DTypeFacts> AllDTypes();
const DTypeFacts& FactsOf(DType dtype);

absl::string_view Name(DType dtype);
std::optional<DType> ParseDType(absl::string_view name);

// Bytes of `elements` elements. INVALID_ARGUMENT if they do not fill whole
// bytes (F4 of an odd count) or overflow.
absl::StatusOr<int64_t> SizeBytes(DType dtype, int64_t elements);

// F32, BF16, F16: what activations, masters and high-precision weights may be.
bool IsHighPrecision(DType dtype);

std::ostream& operator<<(std::ostream& out, DType dtype);

}  // namespace planewise

#endif  // PLANEWISE_CORE_NUMERIC_DTYPE_H_
