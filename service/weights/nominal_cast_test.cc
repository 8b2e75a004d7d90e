#include "service/weights/nominal_cast.h"

#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/numeric/bfloat16.h"
#include "core/numeric/float16.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace planewise {
namespace {

using ::testing::ElementsAre;

TEST(NominalCastTest, RoundsF32ToNearestEven) {
  // 1 + 2^-8 lies halfway between two BF16 values: to the even one, 1.
  const std::vector<float> src = {1.0f, 1.00390625f, 1.01171875f, -3.0f,
                                  std::numeric_limits<float>::infinity()};
  std::vector<uint16_t> dst(src.size());
  CastToNominal({src.data(), DType::kF32, 1, 5}, {dst.data(), DType::kBF16, 1, 5});
  EXPECT_THAT(dst, ElementsAre(0x3F80, 0x3F80, 0x3F82, 0xC040, 0x7F80));
}

TEST(NominalCastTest, WidensHalfTypesExactly) {
  const std::vector<Float16> half = {Float16::FromFloat(0.5f), Float16::FromFloat(65504.0f)};
  std::vector<float> wide(2);
  CastToNominal({half.data(), DType::kF16, 2, 1}, {wide.data(), DType::kF32, 2, 1});
  EXPECT_THAT(wide, ElementsAre(0.5f, 65504.0f));
}

TEST(NominalCastTest, TheSameTypeIsACopy) {
  std::vector<uint16_t> src(1 << 16);
  for (size_t i = 0; i < src.size(); ++i) src[i] = static_cast<uint16_t>(i);
  std::vector<uint16_t> dst(src.size());
  CastToNominal({src.data(), DType::kBF16, 256, 256}, {dst.data(), DType::kBF16, 256, 256});
  for (size_t i = 0; i < src.size(); ++i) {
    const bool is_nan = (src[i] & 0x7FFF) > 0x7F80;
    EXPECT_EQ(dst[i], is_nan ? 0x7FFF : src[i]) << "BF16 " << i << "; NaNs have one form";
  }
}

}  // namespace
}  // namespace planewise
