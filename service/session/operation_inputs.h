#ifndef PLANEWISE_SERVICE_SESSION_OPERATION_INPUTS_H_
#define PLANEWISE_SERVICE_SESSION_OPERATION_INPUTS_H_
// Which tensors an operation brings and how many bytes each has: all that is
// needed to receive it. Also refuses what is malformed whatever the state.
//
// Not here: whether the shapes fit the layer (operation_runner.h).

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "core/numeric/dtype.h"
#include "planewise/v1/session.pb.h"
#include "service/session/session_limits.h"

namespace planewise {

// An activation or gradient [..., features], flattened.
struct FlatTensor {
  DType dtype = DType::kBF16;
  int64_t tokens = 0;
  int64_t features = 0;
  int64_t size_bytes = 0;
};

// INVALID_ARGUMENT naming `field`: DTYPE_UNSUPPORTED for a type that is not F32,
// BF16 or F16; INVALID_REQUEST for no dimension or a negative one;
// LIMIT_EXCEEDED for too many dimensions or bytes.
absl::StatusOr<FlatTensor> FlattenTensor(const v1::TensorSpec& spec, absl::string_view field,
                                         const SessionLimits& limits);

// The tensors that `operation` brings, in the order of its fields.
// INVALID_ARGUMENT: no kind, a field that is missing, too long or malformed.
absl::StatusOr<std::vector<FlatTensor>> InputTensors(const v1::Operation& operation,
                                                     const SessionLimits& limits);

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_SESSION_OPERATION_INPUTS_H_
