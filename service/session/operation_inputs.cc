#include "service/session/operation_inputs.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "proto/status/field_error.h"
#include "service/rpc/tensor_conversion.h"
#include "service/session/session_error.h"

namespace planewise {
namespace {

// `limit_name` is the limit's in session_limits.h.
Error FieldAboveLimit(absl::string_view field, absl::string_view limit_name, int64_t limit,
                      int64_t observed) {
  const std::string what = absl::StrCat(observed, " is too many");
  Error error = AboveLimit(absl::StrCat("field ", field), what, limit_name, limit);
  error.WithViolation({Reason::kLimitExceeded, std::string(field), what});
  return error;
}

absl::Status CheckName(const std::string& name, absl::string_view field,
                       const SessionLimits& limits) {
  if (name.empty()) return InvalidField(field, "it is empty", "a name");
  if (name.size() > static_cast<size_t>(limits.name_bytes_max)) {
    return FieldAboveLimit(field, "name_bytes_max", limits.name_bytes_max,
                      static_cast<int64_t>(name.size()));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<FlatTensor>> ForwardTensors(const v1::Forward& forward,
                                                       const SessionLimits& limits) {
  PW_RETURN_IF_ERROR(CheckName(forward.model(), "forward.model", limits));
  PW_RETURN_IF_ERROR(CheckName(forward.layer(), "forward.layer", limits));
  PW_ASSIGN_OR_RETURN(const FlatTensor input,
                      FlattenTensor(forward.input(), "forward.input", limits));
  return std::vector<FlatTensor>{input};
}

absl::StatusOr<std::vector<FlatTensor>> BackwardTensors(const v1::Backward& backward,
                                                        const SessionLimits& limits) {
  if (backward.operand_case() == v1::Backward::OPERAND_NOT_SET) {
    return InvalidField("backward.operand", "it is not set", "a handle, or the input again");
  }
  if (!backward.input_gradient() && !backward.weight_gradient() && !backward.bias_gradient()) {
    return InvalidField("backward.input_gradient", "no gradient is wanted",
                        "true, or weight_gradient or bias_gradient");
  }
  std::vector<FlatTensor> tensors;
  if (backward.has_input()) {
    const v1::ResentInput& resent = backward.input();
    PW_RETURN_IF_ERROR(CheckName(resent.model(), "backward.input.model", limits));
    PW_RETURN_IF_ERROR(CheckName(resent.layer(), "backward.input.layer", limits));
    if (resent.version() == 0) {
      return InvalidField("backward.input.version", "it is 0",
                          "the version that the forward used");
    }
    if (resent.backward_override() == v1::BACKWARD_OVERRIDE_UNSPECIFIED) {
      return InvalidField("backward.input.backward_override", "it is unspecified",
                          "the override that the forward used");
    }
    PW_ASSIGN_OR_RETURN(tensors.emplace_back(),
                        FlattenTensor(resent.input(), "backward.input.input", limits));
  }
  PW_ASSIGN_OR_RETURN(
      tensors.emplace_back(),
      FlattenTensor(backward.output_gradient(), "backward.output_gradient", limits));
  return tensors;
}

}  // namespace

absl::StatusOr<FlatTensor> FlattenTensor(const v1::TensorSpec& spec, absl::string_view field,
                                         const SessionLimits& limits) {
  FlatTensor tensor;
  const std::string dtype_field = absl::StrCat(field, ".data_type");
  PW_ASSIGN_OR_RETURN(tensor.dtype, FromProto(spec.data_type(), dtype_field));
  if (!IsHighPrecision(tensor.dtype)) {
    return Error(Reason::kDtypeUnsupported,
                 absl::StrCat("field ", dtype_field, ": ", Name(tensor.dtype),
                              "; activations and gradients are F32, BF16 or F16"))
        .WithViolation({Reason::kDtypeUnsupported, dtype_field, std::string(Name(tensor.dtype))});
  }
  const std::string shape_field = absl::StrCat(field, ".shape");
  if (spec.shape().empty()) {
    return InvalidField(shape_field, "it has no dimension",
                        "[..., features], at least one dimension");
  }
  if (spec.shape_size() > limits.tensor_dimensions_max) {
    return FieldAboveLimit(shape_field, "tensor_dimensions_max", limits.tensor_dimensions_max,
                      spec.shape_size());
  }
  tensor.tokens = 1;
  for (int i = 0; i < spec.shape_size(); ++i) {
    const int64_t dimension = spec.shape(i);
    if (dimension < 0) {
      return InvalidField(absl::StrCat(shape_field, "[", i, "]"), absl::StrCat(dimension),
                          "0 or more");
    }
    if (i + 1 == spec.shape_size()) {
      tensor.features = dimension;
    } else {
      PW_ASSIGN_OR_RETURN(tensor.tokens, CheckedMultiply(tensor.tokens, dimension));
    }
  }
  PW_ASSIGN_OR_RETURN(const int64_t elements, CheckedMultiply(tensor.tokens, tensor.features));
  PW_ASSIGN_OR_RETURN(tensor.size_bytes, SizeBytes(tensor.dtype, elements));
  if (tensor.size_bytes > limits.tensor_bytes_max) {
    return FieldAboveLimit(shape_field, "tensor_bytes_max", limits.tensor_bytes_max,
                      tensor.size_bytes);
  }
  return tensor;
}

absl::StatusOr<std::vector<FlatTensor>> InputTensors(const v1::Operation& operation,
                                                     const SessionLimits& limits) {
  switch (operation.kind_case()) {
    case v1::Operation::kForward:
      return ForwardTensors(operation.forward(), limits);
    case v1::Operation::kBackward:
      return BackwardTensors(operation.backward(), limits);
    case v1::Operation::kEndStep:
      return std::vector<FlatTensor>();
    case v1::Operation::kRelease:
      if (operation.release().handles_size() > limits.handles_per_release_max) {
        return FieldAboveLimit("release.handles", "handles_per_release_max",
                          limits.handles_per_release_max, operation.release().handles_size());
      }
      return std::vector<FlatTensor>();
    case v1::Operation::KIND_NOT_SET:
      break;
  }
  return InvalidField("operation.kind", "it is not set, or newer than this daemon",
                      "forward, backward, end_step or release");
}

}  // namespace planewise
