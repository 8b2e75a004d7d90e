// Inputs that broke the numerics of other systems, and what they have to give here.
// Each test names the field report it stands for, and tries the report's kind: the
// same fault in the other formats.
//
// Not here: the rules themselves (core/numeric/NUMERICS.md).

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/base/memory_file_system.h"
#include "core/base/reason.h"
#include "core/checkpoint/safetensors_reader.h"
#include "core/checkpoint/safetensors_writer.h"
#include "core/checkpoint/scale_check.h"
#include "core/numeric/dtype.h"
#include "core/quant/quantizer.h"
#include "core/quant/test_matrix.h"
#include "core/quant/test_plane.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/byte_matchers.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

using testing::Each;
using testing::HasSubstr;

constexpr auto k2D = BlockGeometry::k2D;
constexpr PlaneKind kPlanes[] = {PlaneKind::kRow, PlaneKind::kColumn};

struct NamedSpec {
  const char* name;
  QuantizeSpec spec;
};
const NamedSpec kEveryFormat[] = {
    {"mxfp8", {.format = Format::kMxfp8}},
    {"mxfp8 2-D", {.format = Format::kMxfp8, .geometry = k2D}},
    {"mxfp8 E5M2", {.format = Format::kMxfp8, .element = DType::kF8E5M2}},
    {"nvfp4", {.format = Format::kNvfp4, .element = DType::kF4E2M1}},
    {"nvfp4 2-D", {.format = Format::kNvfp4, .geometry = k2D, .element = DType::kF4E2M1}},
    {"nvfp4 transformed",
     {.format = Format::kNvfp4, .element = DType::kF4E2M1, .hadamard_column = true}},
    {"block", {.format = Format::kFp8Block, .power_of_two_scales = true}},
    {"block F32 scales", {.format = Format::kFp8Block}},
    {"block 2-D", {.format = Format::kFp8Block, .geometry = k2D, .power_of_two_scales = true}},
    {"current", {.format = Format::kFp8Current}},
    {"current power of two", {.format = Format::kFp8Current, .power_of_two_scales = true}},
    {"delayed", {.format = Format::kFp8Delayed, .delayed_scale = 0x1p10f}},
};

class NumericReportTest : public testing::TestWithParam<const Quantizer*> {
 protected:
  const Quantizer& quantizer() const { return *GetParam(); }
};

// Both planes of a matrix and what they stand for.
struct Planes {
  Planes(const Quantizer& with, const QuantizeSpec& spec, const TestMatrix& src)
      : quantizer(with),
        rows(src.view().rows),
        columns(src.view().columns),
        row(*LayoutFor(spec, PlaneKind::kRow, {rows, columns})),
        column(*LayoutFor(spec, PlaneKind::kColumn, {rows, columns}), &row) {
    const MatrixView view = src.view();
    TensorAmax amax;
    PW_EXPECT_OK(quantizer.MeasureAmax(view, spec, {true, true}, AllRows(view), &amax));
    PW_EXPECT_OK(quantizer.Quantize(view, spec, amax, AllRows(view), &row.span(), &column.span()));
  }

  std::vector<float> Values(PlaneKind kind) const {
    std::vector<float> values(static_cast<size_t>(rows * columns));
    const MutableMatrixView matrix = {values.data(), DType::kF32, rows, columns};
    const TestPlane& plane = kind == PlaneKind::kRow ? row : column;
    PW_EXPECT_OK(quantizer.Dequantize(plane.const_span(), matrix, AllRows(matrix)));
    return values;
  }

  const Quantizer& quantizer;
  int64_t rows;
  int64_t columns;
  TestPlane row;
  TestPlane column;
};

// Scales that `verify` has nothing to say about: finite numbers that are not negative.
void ExpectGoodScales(const Planes& planes) {
  for (const TestPlane* plane : {&planes.row, &planes.column}) {
    const ConstPlaneSpan span = plane->const_span();
    EXPECT_EQ(ScaleFaultsOf(span, NonZeroExponents(span)), std::vector<ScaleFault>{});
    for (const float state : plane->state()) {
      if (state != -777.0f) {  // what delayed scaling's owner has not written
        EXPECT_TRUE(std::isfinite(state)) << state;
      }
    }
  }
}

TestMatrix MatrixOf(const std::vector<float>& values, int64_t rows, int64_t columns,
                    DType dtype = DType::kF32) {
  return TestMatrix(dtype, rows, columns, values);
}

float FloatAt(const std::vector<uint8_t>& bytes, size_t index) {
  float value = 0;
  std::memcpy(&value, bytes.data() + index * sizeof(value), sizeof(value));
  return value;
}

// ---- Zeros ---------------------------------------------------------------------

// Field report 25: a fallback scale of 1 for a block of zeros overflowed E4M3.
TEST_P(NumericReportTest, ABlockOfZerosBesideALargeOneHasAFiniteScaleAndReadsAsZero) {
  for (const NamedSpec& format : kEveryFormat) {
    SCOPED_TRACE(format.name);
    // Columns 128 to 255 of all rows are zeros: blocks of every length and direction.
    std::vector<float> values(128 * 256, 0.0f);
    for (size_t i = 0; i < 128; ++i) {
      for (size_t j = 0; j < 128; ++j) values[i * 256 + j] = i % 3 == 0 ? -0.25f : 0.75f;
    }
    values[5] = 1.0f;
    const Planes planes(quantizer(), format.spec, MatrixOf(values, 128, 256));
    ExpectGoodScales(planes);
    for (const PlaneKind kind : kPlanes) {
      if (kind == PlaneKind::kColumn && format.spec.hadamard_column) continue;
      const std::vector<float> read = planes.Values(kind);
      for (size_t i = 0; i < 128; ++i) {
        for (size_t j = 128; j < 256; ++j) ASSERT_EQ(read[i * 256 + j], 0.0f);
      }
    }
  }
  std::vector<float> values(32, 0.0f);
  values[3] = 1.0f;
  const Planes nvfp4(quantizer(), kEveryFormat[3].spec, MatrixOf(values, 1, 32));
  EXPECT_EQ(nvfp4.row.scales()[1], 0x00);  // not 0x7F
}

// Field reports 28 and 29: the reciprocal of a zero row's magnitude is infinite, and
// times 0 it is NaN; in F16 sooner.
TEST_P(NumericReportTest, ARowOfZerosIsZerosInEveryFormat) {
  for (const NamedSpec& format : kEveryFormat) {
    for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
      for (const bool all_zero : {false, true}) {
        SCOPED_TRACE(testing::Message() << format.name << " of " << dtype);
        std::vector<float> values(160 * 96, all_zero ? 0.0f : 2.0f);
        for (size_t j = 0; j < 96; ++j) {
          values[7 * 96 + j] = 0.0f;
          values[8 * 96 + j] = -0.0f;
        }
        const Planes planes(quantizer(), format.spec, MatrixOf(values, 160, 96, dtype));
        ExpectGoodScales(planes);
        for (const PlaneKind kind : kPlanes) {
          if (kind == PlaneKind::kColumn && format.spec.hadamard_column) continue;
          const std::vector<float> read = planes.Values(kind);
          EXPECT_THAT(read, Each(testing::Truly([](float v) { return std::isfinite(v); })));
          for (size_t j = 0; j < 96; ++j) {
            ASSERT_EQ(std::bit_cast<uint32_t>(read[7 * 96 + j]), 0u);
            ASSERT_EQ(std::bit_cast<uint32_t>(read[8 * 96 + j]), 0x80000000u);
          }
        }
      }
    }
  }
}

// ---- Small magnitudes ----------------------------------------------------------

// Field report 26: the scale of a block 2^-20 below the tensor's is less than E4M3's
// smallest number. Such a block is flushed: it has scale 0, codes of ±6 for whatever
// is not 0, and reads as 0.
TEST_P(NumericReportTest, ABlockScaleThatRoundsToZeroFlushesItsBlockAndDividesByNothing) {
  std::vector<float> values(48, 0.0f);
  values[0] = 1.0f;
  values[16] = 1e-6f;
  values[17] = -1e-6f;
  values[18] = 1e-30f;
  // At half of the smallest scale, times 6 of 2688: a tie, which goes to 0. Above it
  // the block is kept.
  const float half = 0x1p-10f * 6.0f / 2688.0f;
  values[32] = half * 1.01f;
  const Planes planes(quantizer(), kEveryFormat[3].spec, MatrixOf(values, 1, 48));
  ExpectGoodScales(planes);
  EXPECT_EQ(planes.row.scales()[0], 0x7E);
  EXPECT_EQ(planes.row.scales()[1], 0x00);
  EXPECT_EQ(planes.row.scales()[2], 0x01);
  EXPECT_EQ(planes.row.payload()[8], 0xF7);  // +6 low, -6 high
  EXPECT_EQ(planes.row.payload()[9], 0x07);
  const std::vector<float> read = planes.Values(PlaneKind::kRow);
  for (size_t j = 16; j < 32; ++j) EXPECT_EQ(read[j], 0.0f) << j;
  EXPECT_GT(read[32], 0.0f);
}

// Field report 30: 448 / 1e-40 exceeds F32.
TEST_P(NumericReportTest, ATinyMagnitudeHasTheLargestScaleAndNotAnInfiniteOne) {
  constexpr float kTiny = 1e-40f;  // a subnormal number
  std::vector<float> values(128 * 128, 0.0f);
  values[1] = kTiny;
  values[2] = -kTiny;
  for (const NamedSpec& format : kEveryFormat) {
    SCOPED_TRACE(format.name);
    const Planes planes(quantizer(), format.spec, MatrixOf(values, 128, 128));
    ExpectGoodScales(planes);
    for (const PlaneKind kind : kPlanes) {
      if (kind == PlaneKind::kColumn && format.spec.hadamard_column) continue;
      for (const float value : planes.Values(kind)) ASSERT_LE(std::fabs(value), 2 * kTiny);
    }
  }
  const Planes current(quantizer(), {.format = Format::kFp8Current}, MatrixOf(values, 128, 128));
  EXPECT_EQ(FloatAt(current.row.scales(), 0), 1.0f / std::numeric_limits<float>::max());
  // 1e-40 times the largest scale lies between 8 and 9 * 2^-8: a normal code.
  EXPECT_NEAR(current.Values(PlaneKind::kRow)[1], kTiny, kTiny / 16);
  // The largest number of BF16 for a block of a BF16 matrix.
  const Planes block(quantizer(), {.format = Format::kFp8Block},
                     MatrixOf(values, 128, 128, DType::kBF16));
  EXPECT_EQ(FloatAt(block.row.scales(), 0), 1.0f / 0x1.fep127f);
}

// ---- Scales --------------------------------------------------------------------

// Field report 31: code 0 means 2^-127, a subnormal number, and 255 NaN.
TEST_P(NumericReportTest, EveryE8M0CodeReadsAsItsPowerAnd255AsNan) {
  const TestPlane plane(*LayoutFor({.format = Format::kMxfp8}, PlaneKind::kRow, {256, 32}));
  const PlaneSpan& span = plane.span();
  constexpr uint8_t kOne = 0x38;  // of E4M3
  std::memset(span.payload, kOne, static_cast<size_t>(span.layout.payload_bytes));
  for (int64_t i = 0; i < 256; ++i) {
    span.scales[i * span.layout.scale_columns] = static_cast<uint8_t>(i);
  }
  std::vector<float> values(256 * 32);
  const MutableMatrixView matrix = {values.data(), DType::kF32, 256, 32};
  PW_ASSERT_OK(quantizer().Dequantize(plane.const_span(), matrix, AllRows(matrix)));
  for (int b = 0; b < 255; ++b) {
    for (size_t j = 0; j < 32; ++j) {
      ASSERT_EQ(values[static_cast<size_t>(b) * 32 + j], std::ldexp(1.0f, b - 127)) << b;
    }
  }
  for (size_t j = 0; j < 32; ++j) ASSERT_TRUE(std::isnan(values[255 * 32 + j]));
}

// The other half of it: what holds such a scale, or one of another format that is no
// number, is found.
TEST(ScaleReportTest, AScaleThatIsNoNumberIsFound) {
  const auto faults = [](const QuantizeSpec& spec, const std::vector<uint8_t>& scale) {
    const TestPlane plane(*LayoutFor(spec, PlaneKind::kRow, {128, 128}));
    std::memset(plane.span().payload, 0, static_cast<size_t>(plane.layout().payload_bytes));
    std::memset(plane.span().scales, 0, static_cast<size_t>(plane.layout().scale_bytes));
    if (plane.layout().scale_dtype == DType::kF32) {
      float* const scales = reinterpret_cast<float*>(plane.span().scales);
      std::fill_n(scales, plane.layout().scale_rows * plane.layout().scale_columns, 1.0f);
    }
    std::copy(scale.begin(), scale.end(), plane.span().scales);
    return ScaleFaultsOf(plane.const_span(), std::nullopt);
  };
  const auto fault = [](const char* text) { return std::vector<ScaleFault>{{0, text}}; };
  const QuantizeSpec nvfp4 = {.format = Format::kNvfp4, .element = DType::kF4E2M1};
  const QuantizeSpec block = {.format = Format::kFp8Block};
  EXPECT_EQ(faults({.format = Format::kMxfp8}, {254}), std::vector<ScaleFault>{});
  EXPECT_EQ(faults({.format = Format::kMxfp8}, {255}),
            fault("1 scales are 255, which is no number"));
  EXPECT_EQ(faults(nvfp4, {0x7E}), std::vector<ScaleFault>{});
  EXPECT_EQ(faults(nvfp4, {0x7F}), fault("1 scales are NaN or negative"));
  EXPECT_EQ(faults(nvfp4, {0x81}), fault("1 scales are NaN or negative"));
  EXPECT_EQ(faults(block, {0xFF, 0xFF, 0x7F, 0x7F}), std::vector<ScaleFault>{});
  for (const std::vector<uint8_t>& scale : {std::vector<uint8_t>{0x00, 0x00, 0x80, 0x7F},
                                            std::vector<uint8_t>{0x00, 0x00, 0x00, 0x00}}) {
    EXPECT_EQ(faults(block, scale), fault("1 scales are not above 0 and finite"));
  }
}

// ---- There and back ------------------------------------------------------------

// Field report 53: 225 is stored as 224, which fits under half the scale. Values
// survive, codes and scales do not: never make planes of dequantized planes.
TEST_P(NumericReportTest, RequantizingALowBlockHalvesItsScaleAndDoublesItsCodes) {
  std::vector<float> values(64, 3.0f);
  values[0] = 225.0f;
  values[32] = 233.0f;  // is stored as 240 and stays where it is
  const QuantizeSpec spec = {.format = Format::kMxfp8};
  const Planes first(quantizer(), spec, MatrixOf(values, 1, 64));
  const std::vector<float> read = first.Values(PlaneKind::kRow);
  EXPECT_EQ(read[0], 224.0f);
  const Planes second(quantizer(), spec, MatrixOf(read, 1, 64));
  EXPECT_EQ(first.row.scales()[0], 127);
  EXPECT_EQ(second.row.scales()[0], 126);
  EXPECT_EQ(first.row.scales()[1], second.row.scales()[1]);
  constexpr uint8_t kDoubled = 0x08;  // one more in the exponent of E4M3
  for (size_t j = 0; j < 64; ++j) {
    EXPECT_EQ(second.row.payload()[j], first.row.payload()[j] + (j < 32 ? kDoubled : 0)) << j;
  }
  EXPECT_EQ(second.Values(PlaneKind::kRow), read);
}

// ---- Files ---------------------------------------------------------------------

std::vector<std::byte> BytesOf(const std::vector<uint8_t>& bytes) {
  const auto* data = reinterpret_cast<const std::byte*>(bytes.data());
  return {data, data + bytes.size()};
}

// Field report 92: readers differ on whether a packed tensor's shape counts elements
// or bytes. Here it counts elements.
TEST(FileReportTest, APackedTensorsShapeCountsElementsAndItsLengthBytes) {
  MemoryFileSystem fs;
  const std::vector<std::byte> codes = BytesOf({0x10, 0x32, 0x54, 0x76, 0x98, 0xBA, 0xDC, 0xFE});
  PW_ASSERT_OK(WriteSafetensors(fs, "/m",
                                {{{"codes", DType::kF4E2M1, {2, 8}}, codes},
                                 {{"none", DType::kF4E2M1, {0, 16}}, {}},
                                 {{"no columns", DType::kF4E2M1, {3, 0}}, {}}}));
  PW_ASSERT_OK_AND_ASSIGN(const SafetensorsReader reader, SafetensorsReader::Open(fs, "/m"));
  for (const SafetensorsEntry& entry : reader.header().tensors) {
    EXPECT_EQ(entry.dtype, DType::kF4E2M1);
    EXPECT_EQ(entry.length, entry.name == "codes" ? 8 : 0) << entry.name;
    if (entry.name == "codes") {
      EXPECT_EQ(entry.shape, (std::vector<int64_t>{2, 8}));
    }
  }
  EXPECT_THAT(reader.ReadWhole("codes"), IsOkAndHolds(codes));
  EXPECT_THAT(reader.ReadWhole("none"), IsOkAndHolds(testing::IsEmpty()));
}

TEST(FileReportTest, APackedTensorOfAnOddCountIsRefused) {
  MemoryFileSystem fs;
  EXPECT_THAT(WriteSafetensors(fs, "/m", {{{"codes", DType::kF4E2M1, {3, 5}}, {}}}),
              HasReason(Reason::kInvalidRequest, HasSubstr("whole bytes")));
}

// Planes with scales of every type, through a file that names their types.
TEST_P(NumericReportTest, PlanesKeepTheirBytesInAFileThatNamesTheirTypes) {
  std::vector<float> values;
  for (int i = 0; i < 64 * 96; ++i) values.push_back(std::ldexp(1.0f + i % 7, i % 23 - 11));
  for (const NamedSpec& format : kEveryFormat) {
    SCOPED_TRACE(format.name);
    const Planes planes(quantizer(), format.spec, MatrixOf(values, 64, 96));
    const PlaneLayout& layout = planes.row.layout();
    const std::vector<std::byte> codes = BytesOf(planes.row.payload());
    const std::vector<std::byte> scales = BytesOf(planes.row.scales());
    MemoryFileSystem fs;
    PW_ASSERT_OK(WriteSafetensors(
        fs, "/m",
        {{{"codes", layout.payload_dtype, {layout.payload_rows, layout.payload_columns}}, codes},
         {{"scales", layout.scale_dtype, {layout.scale_rows, layout.scale_columns}}, scales}}));
    PW_ASSERT_OK_AND_ASSIGN(const SafetensorsReader reader, SafetensorsReader::Open(fs, "/m"));
    EXPECT_THAT(reader.ReadWhole("codes"), IsOkAndHolds(codes));
    EXPECT_THAT(reader.ReadWhole("scales"), IsOkAndHolds(scales));
    for (const SafetensorsEntry& entry : reader.header().tensors) {
      EXPECT_EQ(entry.dtype, entry.name == "codes" ? layout.payload_dtype : layout.scale_dtype);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Quantizers, NumericReportTest,
                         testing::Values(&ScalarQuantizer(), &VectorQuantizer()),
                         [](const auto& test) { return std::string(test.param->name()); });

}  // namespace
}  // namespace planewise
