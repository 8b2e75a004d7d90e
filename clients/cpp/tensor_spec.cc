#include "clients/cpp/tensor_spec.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"

namespace planewise {
namespace {

constexpr absl::string_view kPrefix = "DATA_TYPE_";

}  // namespace

std::optional<DType> DTypeFromProto(v1::DataType data_type) {
  // The API's names are those of safetensors, which dtype.h parses.
  absl::string_view name = v1::DataType_Name(data_type);
  if (name.substr(0, kPrefix.size()) != kPrefix) return std::nullopt;
  return ParseDType(name.substr(kPrefix.size()));
}

absl::StatusOr<int64_t> SizeBytes(const v1::TensorSpec& spec) {
  const std::optional<DType> dtype = DTypeFromProto(spec.data_type());
  if (!dtype) {
    return Error(Reason::kDtypeUnsupported,
                 absl::StrCat("tensor ", ToString(spec), ": no known element type; name one"));
  }
  int64_t elements = 1;
  for (const int64_t dimension : spec.shape()) {
    if (dimension < 0) {
      return Error(Reason::kInvalidRequest, absl::StrCat("tensor ", ToString(spec), ": dimension ",
                                                         dimension, ", required at least 0"));
    }
    PW_ASSIGN_OR_RETURN(elements, CheckedMultiply(elements, dimension));
  }
  return SizeBytes(*dtype, elements);
}

std::string ToString(const v1::TensorSpec& spec) {
  const std::optional<DType> dtype = DTypeFromProto(spec.data_type());
  return absl::StrCat(dtype ? std::string(Name(*dtype)) : "?", " [",
                      absl::StrJoin(spec.shape(), ", "), "]");
}

}  // namespace planewise
