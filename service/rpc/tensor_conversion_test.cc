#include "service/rpc/tensor_conversion.h"

#include "core/base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(TensorConversionTest, EveryTypeOfTheApiComesBackAsItWas) {
  for (int number = 1; number < v1::DataType_ARRAYSIZE; ++number) {
    SCOPED_TRACE(number);
    const auto data_type = static_cast<v1::DataType>(number);
    PW_ASSERT_OK_AND_ASSIGN(const DType dtype, FromProto(data_type, "field"));
    EXPECT_EQ(ToProto(dtype), data_type);
  }
}

TEST(TensorConversionTest, TypesWithoutANameInTheApiAreUnspecified) {
  EXPECT_EQ(ToProto(DType::kI64), v1::DATA_TYPE_UNSPECIFIED);
}

TEST(TensorConversionTest, EveryPlaneComesBackAsItWas) {
  for (const PlaneKind kind : {PlaneKind::kRow, PlaneKind::kColumn, PlaneKind::kHighPrecision}) {
    EXPECT_THAT(FromProto(ToProto(kind), "plane"), IsOkAndHolds(kind));
  }
}

TEST(TensorConversionTest, EveryPartOfAPlaneHasANumberOfItsOwn) {
  EXPECT_EQ(ToProto(PlanePart::kPayload), v1::PLANE_PART_PAYLOAD);
  EXPECT_EQ(ToProto(PlanePart::kScales), v1::PLANE_PART_SCALES);
  EXPECT_EQ(ToProto(PlanePart::kState), v1::PLANE_PART_STATE);
}

TEST(TensorConversionTest, UnknownNumbersNameTheField) {
  for (const auto data_type : {v1::DATA_TYPE_UNSPECIFIED, static_cast<v1::DataType>(99)}) {
    EXPECT_THAT(FromProto(data_type, "forward.input.data_type"),
                HasReason(Reason::kInvalidRequest, HasSubstr("forward.input.data_type")));
  }
  for (const auto plane : {v1::PLANE_UNSPECIFIED, static_cast<v1::Plane>(99)}) {
    EXPECT_THAT(FromProto(plane, "plane"),
                HasReason(Reason::kInvalidRequest,
                          AllOf(HasSubstr("field plane"), HasSubstr("PLANE_ROW"))));
  }
}

TEST(TensorConversionTest, MatrixSpecIsRowsThenColumns) {
  const v1::TensorSpec spec = MatrixSpec(DType::kBF16, 3, 64);
  EXPECT_THAT(spec.shape(), ElementsAre(3, 64));
  EXPECT_EQ(spec.data_type(), v1::DATA_TYPE_BF16);
}

}  // namespace
}  // namespace planewise
