#ifndef PLANEWISE_CLIENTS_CPP_TENSOR_SPEC_H_
#define PLANEWISE_CLIENTS_CPP_TENSOR_SPEC_H_
// Tensor descriptions as the API spells them: how many bytes they stand for.
//
// Not here: the list of element types (core/numeric/dtype.h).

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "core/numeric/dtype.h"
#include "planewise/v1/tensor.pb.h"

namespace planewise {

// nullopt: unspecified, or a type of a newer API.
std::optional<DType> DTypeFromProto(v1::DataType data_type);

// Bytes of a dense tensor. INVALID_ARGUMENT: a negative dimension, no element
// type, or more bytes than can be counted.
absl::StatusOr<int64_t> SizeBytes(const v1::TensorSpec& spec);

// For example "BF16 [8, 384]".
std::string ToString(const v1::TensorSpec& spec);

}  // namespace planewise

#endif  // PLANEWISE_CLIENTS_CPP_TENSOR_SPEC_H_
