#include "clients/cpp/operation_tensors.h"

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "clients/cpp/tensor_spec.h"
#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"

namespace planewise {
namespace {

absl::string_view KindOf(const v1::Operation& operation) {
  switch (operation.kind_case()) {
    case v1::Operation::kForward:
      return "forward";
    case v1::Operation::kBackward:
      return "backward";
    case v1::Operation::kEndStep:
      return "end of step";
    case v1::Operation::kRelease:
      return "release";
    case v1::Operation::KIND_NOT_SET:
      return "operation";
  }
  return "operation";
}

bool IsOfSameKind(const v1::Operation& operation, const v1::OperationResult& result) {
  switch (operation.kind_case()) {
    case v1::Operation::kForward:
      return result.has_forward();
    case v1::Operation::kBackward:
      return result.has_backward();
    case v1::Operation::kEndStep:
      return result.has_end_step();
    case v1::Operation::kRelease:
      return result.has_release();
    case v1::Operation::KIND_NOT_SET:
      return false;
  }
  return false;
}

// `buffers` are spans of either kind; `which` names one, for example "input".
template <typename Buffer>
absl::Status CheckBuffers(absl::string_view object, absl::string_view which,
                          const std::vector<v1::TensorSpec>& tensors,
                          absl::Span<const Buffer> buffers) {
  if (tensors.size() != buffers.size()) {
    return Error(Reason::kShapeMismatch,
                 absl::StrCat(object, ": ", buffers.size(), " ", which, " buffers given, required ",
                              tensors.size(), ": one for each tensor"));
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    const absl::StatusOr<int64_t> size = SizeBytes(tensors[i]);
    if (!size.ok()) return Annotate(size.status(), object);
    if (static_cast<uint64_t>(*size) != buffers[i].size()) {
      return Error(Reason::kShapeMismatch,
                   absl::StrCat(object, ": ", which, " buffer ", i, " has ", buffers[i].size(),
                                " bytes, required ", *size, " for ", ToString(tensors[i])));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<v1::TensorSpec> InputTensors(const v1::Operation& operation) {
  if (operation.has_forward()) return {operation.forward().input()};
  std::vector<v1::TensorSpec> tensors;
  if (operation.has_backward()) {
    const v1::Backward& backward = operation.backward();
    if (backward.has_input()) tensors.push_back(backward.input().input());
    tensors.push_back(backward.output_gradient());
  }
  return tensors;
}

std::vector<v1::TensorSpec> ResultTensors(const v1::OperationResult& result) {
  if (result.has_forward()) return {result.forward().output()};
  std::vector<v1::TensorSpec> tensors;
  if (result.has_backward()) {
    const v1::BackwardResult& backward = result.backward();
    if (backward.has_input_gradient()) tensors.push_back(backward.input_gradient());
    if (backward.has_weight_gradient()) tensors.push_back(backward.weight_gradient());
    if (backward.has_bias_gradient()) tensors.push_back(backward.bias_gradient());
  }
  return tensors;
}

absl::Status CheckAnswer(const v1::Operation& operation, const v1::OperationResult& result) {
  if (!IsOfSameKind(operation, result)) {
    return Error(Reason::kInternal, absl::StrCat("a result that is not of a ", KindOf(operation),
                                                 " for operation ", result.id()));
  }
  int64_t tensor_bytes = 0;
  for (const v1::TensorSpec& tensor : ResultTensors(result)) {
    PW_ASSIGN_OR_RETURN(const int64_t size, SizeBytes(tensor));
    PW_ASSIGN_OR_RETURN(tensor_bytes, CheckedAdd(tensor_bytes, size));
  }
  if (tensor_bytes == result.result_bytes()) return absl::OkStatus();
  return Error(Reason::kInternal,
               absl::StrCat("a result of ", result.result_bytes(), " bytes for operation ",
                            result.id(), ", whose tensors have ", tensor_bytes));
}

absl::Status CheckInputs(const v1::Operation& operation,
                         absl::Span<const absl::string_view> inputs) {
  return CheckBuffers(KindOf(operation), "input", InputTensors(operation), inputs);
}

absl::Status CheckOutputs(const v1::OperationResult& result,
                          absl::Span<const absl::Span<char>> outputs) {
  return CheckBuffers(absl::StrCat("operation ", result.id()), "output", ResultTensors(result),
                      outputs);
}

}  // namespace planewise
