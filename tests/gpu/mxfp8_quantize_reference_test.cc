// The device's row planes are those of the scalar quantizer, byte for byte: every
// kind of input, shapes that end inside a scale tile or a warp, every launch.

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "core/base/reason.h"
#include "core/device/device_buffer.h"
#include "core/quant/cuda/mxfp8_quantize_launcher.h"
#include "core/quant/quantizer.h"
#include "core/quant/test_matrix.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/gpu/device_quantize.h"
#include "tests/testing/byte_matchers.h"
#include "tests/testing/seed.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

using ::testing::HasSubstr;

constexpr DType kSources[] = {DType::kBF16, DType::kF16, DType::kF32};
constexpr DType kElements[] = {DType::kF8E4M3, DType::kF8E5M2};

void CompareWithScalar(MatrixView source, DType element, int threads_per_block) {
  GuardedPlane want(PlaneKind::kRow, source, element);
  PW_ASSERT_OK(ScalarQuantizer().Quantize(source, {.format = Format::kMxfp8, .element = element},
                                          {}, AllRows(source), want.span(), nullptr));
  PW_ASSERT_OK_AND_ASSIGN(const DeviceRowPlane got,
                          QuantizeOnDevice(source, element, threads_per_block));
  EXPECT_THAT(got.payload, SameBytes(want.payload()));
  EXPECT_THAT(got.scales, SameBytes(want.scales()));
  EXPECT_TRUE(got.guards_intact);
}

TEST(Mxfp8QuantizeReferenceTest, EveryKindOfInput) {
  std::mt19937_64 random(TestSeed());
  for (Distribution distribution : kDistributions) {
    for (DType source : kSources) {
      for (DType element : kElements) {
        SCOPED_TRACE(testing::Message() << "distribution " << static_cast<int>(distribution) << ", "
                                        << source << " to " << element);
        const TestMatrix matrix(source, 200, 224, distribution, random);
        CompareWithScalar(matrix.view(), element, 0);
      }
    }
  }
}

TEST(Mxfp8QuantizeReferenceTest, EveryShapeUnderEveryLaunch) {
  const struct {
    int64_t rows, columns;
  } shapes[] = {
      {0, 64},      // nothing
      {1, 32},      // one block; all other scale bytes are padding
      {3, 4096},    // few rows
      {127, 128},   // a row short of a scale tile
      {128, 160},   // 5 blocks a row, padded to 8
      {129, 96},    // 3 blocks a row, padded to 4; a row over a tile
      {300, 11008}, // a width of real models: 344 blocks a row
  };
  std::mt19937_64 random(TestSeed());
  for (const auto& [rows, columns] : shapes) {
    for (DType source : kSources) {
      for (int threads_per_block : {0, 32, 64, 128, 256}) {
        SCOPED_TRACE(testing::Message() << "[" << rows << ", " << columns << "] " << source << ", "
                                        << threads_per_block << " threads");
        const TestMatrix matrix(source, rows, columns, Distribution::kOrdinary, random);
        CompareWithScalar(matrix.view(), DType::kF8E4M3, threads_per_block);
      }
    }
  }
}

TEST(Mxfp8QuantizeReferenceTest, RefusesAnAddressThatItCannotLoadFrom) {
  PW_ASSERT_OK_AND_ASSIGN(const auto problem,
                          MakeMxfp8QuantizeProblem(4, 32, DType::kBF16, DType::kF8E4M3));
  PW_ASSERT_OK_AND_ASSIGN(const DeviceBuffer buffer, DeviceBuffer::Allocate(4096));
  EXPECT_THAT(LaunchMxfp8Quantize(problem, PlanMxfp8Quantize(problem, 1),
                                  {buffer.bytes() + 2, buffer.bytes(), buffer.bytes()}, nullptr),
              HasReason(Reason::kInvalidRequest,
                        HasSubstr("the address of source is 2 above a multiple of 16")));
}

TEST(DeviceBufferTest, SaysHowMuchTheDeviceCouldNotGive) {
  EXPECT_THAT(DeviceBuffer::Allocate(int64_t{1} << 50),
              HasReason(Reason::kMemoryShortfall, HasSubstr("allocate 1125899906842624 device")));
  // And goes on.
  EXPECT_THAT(DeviceBuffer::Allocate(1024), IsOk());
}

}  // namespace
}  // namespace planewise
