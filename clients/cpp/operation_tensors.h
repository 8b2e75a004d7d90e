#ifndef PLANEWISE_CLIENTS_CPP_OPERATION_TENSORS_H_
#define PLANEWISE_CLIENTS_CPP_OPERATION_TENSORS_H_
// Which tensors travel with an operation and with its result, in the order of
// their bytes: that of the message's fields.
//
// Not here: what one tensor's description means (tensor_spec.h).

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "planewise/v1/session.pb.h"

namespace planewise {

std::vector<v1::TensorSpec> InputTensors(const v1::Operation& operation);
std::vector<v1::TensorSpec> ResultTensors(const v1::OperationResult& result);

// Is a result without an error one that `operation` can have, and its size that of its
// tensors? INTERNAL if not: no daemon sends such a thing.
absl::Status CheckAnswer(const v1::Operation& operation, const v1::OperationResult& result);

// Has each tensor of `operation` its bytes in `inputs`, each tensor of `result` memory of its size
// in `outputs`? INVALID_ARGUMENT / SHAPE_MISMATCH, or what SizeBytes finds.
absl::Status CheckInputs(const v1::Operation& operation,
                         absl::Span<const absl::string_view> inputs);
absl::Status CheckOutputs(const v1::OperationResult& result,
                          absl::Span<const absl::Span<char>> outputs);

}  // namespace planewise

#endif  // PLANEWISE_CLIENTS_CPP_OPERATION_TENSORS_H_
