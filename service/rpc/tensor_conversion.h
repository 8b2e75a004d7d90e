#ifndef PLANEWISE_SERVICE_RPC_TENSOR_CONVERSION_H_
#define PLANEWISE_SERVICE_RPC_TENSOR_CONVERSION_H_
// Element types, planes, their parts and tensor specs between the API and core. A field that
// does not convert is named by its path, for example "forward.input.data_type".
//
// Not here: recipes (proto/recipe), models (model_conversion.h).

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/numeric/dtype.h"
#include "core/tensor/plane_layout.h"
#include "planewise/v1/tensor.pb.h"

namespace planewise {

// INVALID_ARGUMENT / INVALID_REQUEST for unspecified or unknown numbers, naming
// `field`.
absl::StatusOr<DType> FromProto(v1::DataType data_type, absl::string_view field);
absl::StatusOr<PlaneKind> FromProto(v1::Plane plane, absl::string_view field);

// DATA_TYPE_UNSPECIFIED for types that the API has no name for.
v1::DataType ToProto(DType dtype);
v1::Plane ToProto(PlaneKind kind);
v1::PlanePart ToProto(PlanePart part);

// The flattened tensor [rows, columns].
v1::TensorSpec MatrixSpec(DType dtype, int64_t rows, int64_t columns);

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_RPC_TENSOR_CONVERSION_H_
