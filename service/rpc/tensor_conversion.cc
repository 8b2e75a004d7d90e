#include "service/rpc/tensor_conversion.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/status/field_error.h"

namespace planewise {
namespace {

// The API's names are safetensors' with a prefix; so are DType's.
constexpr absl::string_view kDataTypePrefix = "DATA_TYPE_";

}  // namespace

absl::StatusOr<DType> FromProto(v1::DataType data_type, absl::string_view field) {
  absl::string_view name = v1::DataType_Name(data_type);
  if (data_type != v1::DATA_TYPE_UNSPECIFIED && absl::ConsumePrefix(&name, kDataTypePrefix)) {
    if (const std::optional<DType> dtype = ParseDType(name)) return *dtype;
  }
  return InvalidField(field, absl::StrCat("element type ", data_type, " is not known"),
                      "one of the named DataType values");
}

absl::StatusOr<PlaneKind> FromProto(v1::Plane plane, absl::string_view field) {
  switch (plane) {
    case v1::PLANE_ROW:
      return PlaneKind::kRow;
    case v1::PLANE_COLUMN:
      return PlaneKind::kColumn;
    case v1::PLANE_HIGH_PRECISION:
      return PlaneKind::kHighPrecision;
    default:
      return InvalidField(field, absl::StrCat("plane ", plane, " is not known"),
                          "PLANE_ROW, PLANE_COLUMN or PLANE_HIGH_PRECISION");
  }
}

v1::DataType ToProto(DType dtype) {
  v1::DataType data_type = v1::DATA_TYPE_UNSPECIFIED;
  v1::DataType_Parse(absl::StrCat(kDataTypePrefix, Name(dtype)), &data_type);
  return data_type;
}

v1::Plane ToProto(PlaneKind kind) {
  switch (kind) {
    case PlaneKind::kRow:
      return v1::PLANE_ROW;
    case PlaneKind::kColumn:
      return v1::PLANE_COLUMN;
    case PlaneKind::kHighPrecision:
      return v1::PLANE_HIGH_PRECISION;
  }
  return v1::PLANE_UNSPECIFIED;
}

v1::PlanePart ToProto(PlanePart part) {
  switch (part) {
    case PlanePart::kPayload:
      return v1::PLANE_PART_PAYLOAD;
    case PlanePart::kScales:
      return v1::PLANE_PART_SCALES;
    case PlanePart::kState:
      return v1::PLANE_PART_STATE;
  }
  return v1::PLANE_PART_UNSPECIFIED;
}

v1::TensorSpec MatrixSpec(DType dtype, int64_t rows, int64_t columns) {
  v1::TensorSpec spec;
  spec.set_data_type(ToProto(dtype));
  spec.add_shape(rows);
  spec.add_shape(columns);
  return spec;
}

}  // namespace planewise
