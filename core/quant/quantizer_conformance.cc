#include "core/quant/quantizer_conformance.h"

#include <cfenv>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "core/base/reason.h"
#include "core/numeric/bfloat16.h"
#include "core/numeric/float16.h"
#include "core/quant/mxfp8_reference.h"
#include "core/quant/test_matrix.h"
#include "tests/testing/byte_matchers.h"
#include "tests/testing/seed.h"
#include "tests/testing/status_matchers.h"

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace planewise {

namespace {

using testing::HasSubstr;

constexpr DType kElements[] = {DType::kF8E4M3, DType::kF8E5M2};
constexpr DType kHighPrecision[] = {DType::kF32, DType::kBF16, DType::kF16};

struct Shape {
  int64_t rows;
  int64_t columns;
};

// Fewer rows than a block, one more and one less than whole blocks, scale
// padding of every width.
constexpr Shape kShapes[] = {{0, 64}, {1, 32}, {5, 64}, {31, 96}, {32, 32}, {33, 160}, {95, 64}};
// Shapes that only a column plane takes.
constexpr Shape kColumnShapes[] = {{1, 1}, {33, 7}, {40, 33}, {64, 100}, {31, 1}, {32, 95}};

std::string What(DType dtype, DType element, Shape shape, int distribution) {
  return testing::PrintToString(dtype) + " to " + testing::PrintToString(element) + " [" +
         std::to_string(shape.rows) + ", " + std::to_string(shape.columns) + "] distribution " +
         std::to_string(distribution);
}

void ExpectPlaneAsReference(const GuardedPlane& plane, const std::vector<float>& values,
                            DType element) {
  const auto want = Mxfp8Reference(element).Quantize(values, plane.layout());
  EXPECT_THAT(plane.scales(), SameBytes(want.scales)) << plane.layout().kind;
  EXPECT_THAT(plane.payload(), SameBytes(want.payload)) << plane.layout().kind;
  EXPECT_TRUE(plane.GuardsIntact()) << plane.layout().kind;
}

TEST_P(QuantizerConformance, PlanesEqualTheReference) {
  std::mt19937_64 random(TestSeed());
  for (const DType dtype : kHighPrecision) {
    for (const DType element : kElements) {
      for (const Distribution distribution : kDistributions) {
        for (const Shape shape : kShapes) {
          SCOPED_TRACE(What(dtype, element, shape, static_cast<int>(distribution)));
          const TestMatrix src(dtype, shape.rows, shape.columns, distribution, random);
          GuardedPlane row(PlaneKind::kRow, src.view(), element);
          GuardedPlane column(PlaneKind::kColumn, src.view(), element);
          PW_ASSERT_OK(QuantizeMxfp8(src.view(), element, row.span(), column.span()));
          ExpectPlaneAsReference(row, src.values(), element);
          ExpectPlaneAsReference(column, src.values(), element);
          if (HasFailure()) return;  // The first is enough to read.
        }
      }
    }
  }
}

// More rows and columns than implementations work on at a time.
TEST_P(QuantizerConformance, LargePlanesEqualTheReference) {
  std::mt19937_64 random(TestSeed());
  for (const DType dtype : kHighPrecision) {
    const TestMatrix src(dtype, 66, 2144, Distribution::kNonFinite, random);
    GuardedPlane row(PlaneKind::kRow, src.view(), DType::kF8E4M3);
    GuardedPlane column(PlaneKind::kColumn, src.view(), DType::kF8E4M3);
    PW_ASSERT_OK(QuantizeMxfp8(src.view(), DType::kF8E4M3, row.span(), column.span()));
    ExpectPlaneAsReference(row, src.values(), DType::kF8E4M3);
    ExpectPlaneAsReference(column, src.values(), DType::kF8E4M3);
  }
}

TEST_P(QuantizerConformance, ColumnPlanesTakeAnyShape) {
  std::mt19937_64 random(TestSeed());
  for (const DType dtype : kHighPrecision) {
    for (const DType element : kElements) {
      for (const Distribution distribution : kDistributions) {
        for (const Shape shape : kColumnShapes) {
          SCOPED_TRACE(What(dtype, element, shape, static_cast<int>(distribution)));
          const TestMatrix src(dtype, shape.rows, shape.columns, distribution, random);
          GuardedPlane column(PlaneKind::kColumn, src.view(), element);
          PW_ASSERT_OK(QuantizeMxfp8(src.view(), element, nullptr, column.span()));
          ExpectPlaneAsReference(column, src.values(), element);
          if (HasFailure()) return;
        }
      }
    }
  }
}

TEST_P(QuantizerConformance, EachPlaneIsTheSameWithAndWithoutTheOther) {
  std::mt19937_64 random(TestSeed());
  const TestMatrix src(DType::kBF16, 70, 320, Distribution::kOrdinary, random);
  GuardedPlane row_of_both(PlaneKind::kRow, src.view(), DType::kF8E4M3);
  GuardedPlane column_of_both(PlaneKind::kColumn, src.view(), DType::kF8E4M3);
  GuardedPlane row(PlaneKind::kRow, src.view(), DType::kF8E4M3);
  GuardedPlane column(PlaneKind::kColumn, src.view(), DType::kF8E4M3);
  PW_ASSERT_OK(
      QuantizeMxfp8(src.view(), DType::kF8E4M3, row_of_both.span(), column_of_both.span()));
  PW_ASSERT_OK(QuantizeMxfp8(src.view(), DType::kF8E4M3, row.span(), nullptr));
  PW_ASSERT_OK(QuantizeMxfp8(src.view(), DType::kF8E4M3, nullptr, column.span()));
  PW_ASSERT_OK(QuantizeMxfp8(src.view(), DType::kF8E4M3, nullptr, nullptr));
  EXPECT_THAT(row.payload(), SameBytes(row_of_both.payload()));
  EXPECT_THAT(row.scales(), SameBytes(row_of_both.scales()));
  EXPECT_THAT(column.payload(), SameBytes(column_of_both.payload()));
  EXPECT_THAT(column.scales(), SameBytes(column_of_both.scales()));
}

TEST_P(QuantizerConformance, PartsOfRowsGiveTheBytesOfTheWhole) {
  std::mt19937_64 random(TestSeed());
  const TestMatrix src(DType::kBF16, 300, 96, Distribution::kWide, random);
  GuardedPlane whole_row(PlaneKind::kRow, src.view(), DType::kF8E4M3);
  GuardedPlane whole_column(PlaneKind::kColumn, src.view(), DType::kF8E4M3);
  PW_ASSERT_OK(QuantizeMxfp8(src.view(), DType::kF8E4M3, whole_row.span(), whole_column.span()));
  GuardedPlane row(PlaneKind::kRow, src.view(), DType::kF8E4M3);
  GuardedPlane column(PlaneKind::kColumn, src.view(), DType::kF8E4M3);
  std::vector<uint16_t> whole_values(300 * 96);
  std::vector<uint16_t> values(300 * 96);
  for (const auto& [first, count] : {std::pair{256, 44}, std::pair{0, 128}, std::pair{128, 128}}) {
    const RowRange rows = {first, count};
    PW_ASSERT_OK(quantizer().Quantize(src.view(), {.format = Format::kMxfp8}, {}, rows, row.span(),
                                      column.span()));
    PW_ASSERT_OK(quantizer().Dequantize(whole_column.const_span(),
                                        {values.data(), DType::kBF16, 300, 96}, rows));
  }
  EXPECT_THAT(row.payload(), SameBytes(whole_row.payload()));
  EXPECT_THAT(row.scales(), SameBytes(whole_row.scales()));
  EXPECT_THAT(column.payload(), SameBytes(whole_column.payload()));
  EXPECT_THAT(column.scales(), SameBytes(whole_column.scales()));
  PW_ASSERT_OK(Dequantize(whole_column.const_span(), {whole_values.data(), DType::kBF16, 300, 96}));
  EXPECT_EQ(values, whole_values);
}

// The bits of `value`, which is exact in double, as `dtype`; one NaN for all.
uint32_t BitsOf(double value, DType dtype) {
  // fl(): overflows to infinity, and no code times a scale needs more bits.
  const float wide = static_cast<float>(value);
  if (dtype == DType::kF32) return std::isnan(value) ? 0x7FFFFFFF : std::bit_cast<uint32_t>(wide);
  return dtype == DType::kBF16 ? BFloat16::FromFloat(wide).bits : Float16::FromFloat(wide).bits;
}

uint32_t ElementBits(const std::vector<uint8_t>& bytes, DType dtype, int64_t index) {
  uint32_t bits = 0;
  const size_t size = static_cast<size_t>(FactsOf(dtype).bits / 8);
  std::memcpy(&bits, bytes.data() + static_cast<size_t>(index) * size, size);
  return bits;
}

// [8 * 256, 32] for a row plane: eight blocks hold all codes, once per scale.
// A column plane of the same codes is [32, 8 * 256].
TEST_P(QuantizerConformance, EveryCodeUnderEveryScaleDequantizesAsTheFormula) {
  constexpr int64_t kBlocks = 8 * 256;
  for (const DType element : kElements) {
    const Mxfp8Reference reference(element);
    for (const PlaneKind kind : {PlaneKind::kRow, PlaneKind::kColumn}) {
      const bool is_row = kind == PlaneKind::kRow;
      const int64_t rows = is_row ? kBlocks : 32;
      const int64_t columns = is_row ? 32 : kBlocks;
      GuardedPlane plane(kind, {nullptr, DType::kF32, rows, columns}, element);
      for (int64_t block = 0; block < kBlocks; ++block) {
        const int64_t scale_columns = plane.layout().scale_columns;
        plane.span()->scales[is_row ? block * scale_columns : block] =
            static_cast<uint8_t>(block / 8);
        const BlockElements elements =
            ElementsOfBlock(plane.layout(), is_row ? block : 0, is_row ? 0 : block);
        for (int64_t k = 0; k < 32; ++k) {
          plane.span()->payload[elements.first + k * elements.stride] =
              static_cast<uint8_t>(block % 8 * 32 + k);
        }
      }
      for (const DType dtype : kHighPrecision) {
        SCOPED_TRACE(testing::Message() << element << " " << kind << " to " << dtype);
        const int64_t element_bytes = FactsOf(dtype).bits / 8;
        GuardedBytes values(rows * columns * element_bytes, element_bytes);
        PW_ASSERT_OK(Dequantize(plane.const_span(), {values.data(), dtype, rows, columns}));
        EXPECT_TRUE(values.GuardsIntact());
        const std::vector<uint8_t> bytes = values.contents();
        for (int64_t block = 0; block < kBlocks; ++block) {
          const uint32_t b = static_cast<uint32_t>(block / 8);
          const BlockElements elements =
              ElementsOfBlock(plane.layout(), is_row ? block : 0, is_row ? 0 : block);
          for (int64_t k = 0; k < 32; ++k) {
            const uint32_t code = static_cast<uint32_t>(block % 8 * 32 + k);
            const double want = b == 255 ? NAN : reference.ValueOf(code, b);
            ASSERT_EQ(ElementBits(bytes, dtype, elements.first + k * elements.stride),
                      BitsOf(want, dtype))
                << "code " << code << " b " << b;
          }
        }
      }
    }
  }
}

TEST_P(QuantizerConformance, DequantizesEveryShape) {
  std::mt19937_64 random(TestSeed());
  for (const PlaneKind kind : {PlaneKind::kRow, PlaneKind::kColumn}) {
    const Mxfp8Reference reference(DType::kF8E4M3);
    for (const Shape shape : {Shape{0, 64}, {1, 32}, {33, 160}, {130, 2080}, {33, 7}, {40, 95}}) {
      SCOPED_TRACE(What(DType::kF32, DType::kF8E4M3, shape, 0));
      GuardedPlane plane(kind, {nullptr, DType::kF32, shape.rows, shape.columns}, DType::kF8E4M3);
      for (int64_t i = 0; i < plane.layout().payload_bytes; ++i) {
        plane.span()->payload[i] = static_cast<uint8_t>(random());
      }
      for (int64_t i = 0; i < plane.layout().scale_bytes; ++i) {
        plane.span()->scales[i] = static_cast<uint8_t>(random());
      }
      for (const DType dtype : kHighPrecision) {
        const int64_t element_bytes = FactsOf(dtype).bits / 8;
        GuardedBytes values(shape.rows * shape.columns * element_bytes, element_bytes);
        PW_ASSERT_OK(
            Dequantize(plane.const_span(), {values.data(), dtype, shape.rows, shape.columns}));
        EXPECT_TRUE(values.GuardsIntact());
        const std::vector<uint8_t> bytes = values.contents();
        for (int64_t i = 0; i < plane.layout().used_scale_rows; ++i) {
          for (int64_t j = 0; j < plane.layout().used_scale_columns; ++j) {
            const uint32_t b = plane.span()->scales[i * plane.layout().scale_columns + j];
            const BlockElements block = ElementsOfBlock(plane.layout(), i, j);
            for (int64_t k = 0; k < block.count; ++k) {
              const int64_t at = block.first + k * block.stride;
              const double want = b == 255 ? NAN : reference.ValueOf(plane.span()->payload[at], b);
              ASSERT_EQ(ElementBits(bytes, dtype, at), BitsOf(want, dtype)) << i << ", " << j;
            }
          }
        }
      }
    }
  }
}

// A library in the same process may have left the thread in such a mode.
TEST_P(QuantizerConformance, BytesDoNotDependOnTheFloatingPointMode) {
  std::mt19937_64 random(TestSeed());
  const TestMatrix src(DType::kF32, 64, 96, Distribution::kWide, random);
  GuardedPlane row(PlaneKind::kRow, src.view(), DType::kF8E4M3);
  GuardedPlane column(PlaneKind::kColumn, src.view(), DType::kF8E4M3);
  std::vector<float> values(64 * 96);
  std::vector<float> want(64 * 96);

  std::fesetround(FE_UPWARD);
#if defined(__SSE__)
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | 0x8040);  // flush to zero, subnormals are zero
#endif
  const absl::Status quantized =
      QuantizeMxfp8(src.view(), DType::kF8E4M3, row.span(), column.span());
  const absl::Status dequantized =
      Dequantize(row.const_span(), {values.data(), DType::kF32, 64, 96});
#if defined(__SSE__)
  _mm_setcsr(before);
#endif
  std::fesetround(FE_TONEAREST);

  PW_ASSERT_OK(quantized);
  PW_ASSERT_OK(dequantized);
  ExpectPlaneAsReference(row, src.values(), DType::kF8E4M3);
  ExpectPlaneAsReference(column, src.values(), DType::kF8E4M3);
  PW_ASSERT_OK(Dequantize(row.const_span(), {want.data(), DType::kF32, 64, 96}));
  EXPECT_EQ(std::memcmp(values.data(), want.data(), values.size() * sizeof(float)), 0);
}

// What users rely on when they save and load again: values survive another
// round, although codes need not (a block may settle one exponent lower).
TEST_P(QuantizerConformance, RequantizingKeepsValues) {
  std::mt19937_64 random(TestSeed());
  const TestMatrix src(DType::kBF16, 128, 256, Distribution::kOrdinary, random);
  std::vector<float> first(128 * 256);
  std::vector<float> second(128 * 256);
  GuardedPlane plane(PlaneKind::kRow, src.view(), DType::kF8E4M3);
  PW_ASSERT_OK(QuantizeMxfp8(src.view(), DType::kF8E4M3, plane.span(), nullptr));
  PW_ASSERT_OK(Dequantize(plane.const_span(), {first.data(), DType::kF32, 128, 256}));
  PW_ASSERT_OK(
      QuantizeMxfp8({first.data(), DType::kF32, 128, 256}, DType::kF8E4M3, plane.span(), nullptr));
  PW_ASSERT_OK(Dequantize(plane.const_span(), {second.data(), DType::kF32, 128, 256}));
  EXPECT_EQ(first, second);
}

TEST_P(QuantizerConformance, RefusesWhatDoesNotFitAndWritesNothing) {
  std::mt19937_64 random(TestSeed());
  const TestMatrix src(DType::kBF16, 32, 64, Distribution::kOrdinary, random);
  const TestMatrix narrow(DType::kBF16, 32, 40, Distribution::kOrdinary, random);
  GuardedPlane row(PlaneKind::kRow, src.view(), DType::kF8E4M3);
  GuardedPlane column(PlaneKind::kColumn, src.view(), DType::kF8E4M3);
  GuardedPlane narrow_row(PlaneKind::kRow, narrow.view(), DType::kF8E4M3);
  const std::vector<uint8_t> untouched = row.payload();

  EXPECT_THAT(QuantizeMxfp8(narrow.view(), DType::kF8E4M3, narrow_row.span(), nullptr),
              HasReason(Reason::kShapeNotDivisible, HasSubstr("40 columns % 32 = 8")));
  EXPECT_THAT(QuantizeMxfp8(src.view(), DType::kF8E5M2, row.span(), nullptr),
              HasReason(Reason::kShapeMismatch, HasSubstr("required row plane F8_E5M2 [32, 64]")));
  EXPECT_THAT(QuantizeMxfp8(src.view(), DType::kF8E4M3, row.span(), row.span()),
              HasReason(Reason::kShapeMismatch, HasSubstr("required column plane")));
  EXPECT_THAT(QuantizeMxfp8(narrow.view(), DType::kF8E4M3, nullptr, column.span()),
              HasReason(Reason::kShapeMismatch));
  EXPECT_THAT(QuantizeMxfp8(src.view(), DType::kBF16, row.span(), nullptr),
              HasReason(Reason::kDtypeUnsupported, HasSubstr("required F8_E4M3 or F8_E5M2")));
  MatrixView integers = src.view();
  integers.dtype = DType::kI16;
  EXPECT_THAT(QuantizeMxfp8(integers, DType::kF8E4M3, row.span(), nullptr),
              HasReason(Reason::kDtypeUnsupported, HasSubstr("required F32, BF16 or F16")));

  std::vector<float> values(32 * 64, 7.0f);
  EXPECT_THAT(Dequantize(row.const_span(), {values.data(), DType::kF32, 64, 32}),
              HasReason(Reason::kShapeMismatch));
  ConstPlaneSpan other_codes = row.const_span();
  other_codes.layout.payload_dtype = DType::kF4E2M1;
  EXPECT_THAT(Dequantize(other_codes, {values.data(), DType::kF32, 32, 64}),
              HasReason(Reason::kShapeMismatch, HasSubstr("no format stores a matrix [32, 64]")));
  EXPECT_THAT(Dequantize(row.const_span(), {values.data(), DType::kU8, 32, 64}),
              HasReason(Reason::kDtypeUnsupported));
  ConstPlaneSpan not_quantized = row.const_span();
  not_quantized.layout.kind = PlaneKind::kHighPrecision;
  EXPECT_THAT(Dequantize(not_quantized, {values.data(), DType::kF32, 32, 64}),
              HasReason(Reason::kInvalidRequest));
  EXPECT_THAT(row.payload(), SameBytes(untouched));
  EXPECT_EQ(values, std::vector<float>(32 * 64, 7.0f));
}

}  // namespace
}  // namespace planewise
