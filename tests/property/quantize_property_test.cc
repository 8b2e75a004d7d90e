// Properties that quantized planes have in every format, and where they end. Inputs
// are random; the seed is printed (tests/testing/seed.h).
//
// Not here: which bytes a plane has (core/quant/format_conformance.h).

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "core/base/checked_math.h"
#include "core/quant/hadamard.h"
#include "core/quant/quantizer.h"
#include "core/quant/test_matrix.h"
#include "core/quant/test_plane.h"
#include "core/recipe/recipe_check.h"
#include "gtest/gtest.h"
#include "tests/testing/byte_matchers.h"
#include "tests/testing/seed.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

constexpr auto k2D = BlockGeometry::k2D;
constexpr auto kE5M2 = DType::kF8E5M2;
constexpr auto kE2M1 = DType::kF4E2M1;
constexpr PlaneKind kPlanes[] = {PlaneKind::kRow, PlaneKind::kColumn};
constexpr DType kHighPrecision[] = {DType::kF32, DType::kBF16, DType::kF16};

struct Case {
  const char* name;
  QuantizeSpec spec;
};

const Case kPowerOfTwoScales[] = {
    {"mxfp8", {.format = Format::kMxfp8}},
    {"mxfp8 E5M2", {.format = Format::kMxfp8, .element = kE5M2}},
    {"mxfp8 2-D", {.format = Format::kMxfp8, .geometry = k2D}},
    {"block", {.format = Format::kFp8Block, .power_of_two_scales = true}},
    {"block 2-D, epsilon",
     {.format = Format::kFp8Block,
      .geometry = k2D,
      .power_of_two_scales = true,
      .amax_epsilon = 0.7f}},
    {"current", {.format = Format::kFp8Current, .power_of_two_scales = true}},
    {"current E5M2",
     {.format = Format::kFp8Current, .element = kE5M2, .power_of_two_scales = true}},
};
const Case kF32Scales[] = {
    {"block F32", {.format = Format::kFp8Block}},
    {"block 2-D F32 E5M2", {.format = Format::kFp8Block, .geometry = k2D, .element = kE5M2}},
    {"current F32", {.format = Format::kFp8Current}},
    {"current F32, epsilon", {.format = Format::kFp8Current, .amax_epsilon = 1.3f}},
};
const Case kDelayed[] = {
    {"delayed", {.format = Format::kFp8Delayed, .delayed_scale = 41.7f}},
    {"delayed E5M2",
     {.format = Format::kFp8Delayed, .element = kE5M2, .delayed_scale = 0x1.23p20f}},
};
const Case kNvfp4[] = {
    {"nvfp4", {.format = Format::kNvfp4, .element = kE2M1}},
    {"nvfp4 2-D", {.format = Format::kNvfp4, .geometry = k2D, .element = kE2M1}},
};
// Of activations and gradients.
const Case kNvfp4OfOperands[] = {
    {"nvfp4 transformed", {.format = Format::kNvfp4, .element = kE2M1, .hadamard_column = true}},
    {"nvfp4 stochastic",
     {.format = Format::kNvfp4, .element = kE2M1, .stochastic = StochasticKey{1, 2, 3}}},
};

template <size_t... kCounts>
std::vector<Case> Join(const Case (&... lists)[kCounts]) {
  std::vector<Case> all;
  (all.insert(all.end(), std::begin(lists), std::end(lists)), ...);
  return all;
}
std::vector<Case> RoundedToNearest() {
  return Join(kPowerOfTwoScales, kF32Scales, kDelayed, kNvfp4);
}
std::vector<Case> EveryCase() {
  return Join(kPowerOfTwoScales, kF32Scales, kDelayed, kNvfp4, kNvfp4OfOperands);
}

size_t At(int64_t index) { return static_cast<size_t>(index); }

// Both planes of a matrix: per-tensor ones as a device stores them that keeps the
// transpose.
class Planes {
 public:
  Planes(const Quantizer& quantizer, const QuantizeSpec& spec, MatrixView src, bool with_row = true)
      : quantizer_(quantizer),
        shape_{src.rows, src.columns},
        row_(LayoutOf(spec, PlaneKind::kRow, shape_)),
        column_(LayoutOf(spec, PlaneKind::kColumn, shape_), &row_) {
    PW_EXPECT_OK(quantizer.MeasureAmax(src, spec, {true, true}, AllRows(src), &amax_));
    PW_EXPECT_OK(quantizer.Quantize(src, spec, amax_, AllRows(src),
                                    with_row ? &row_.span() : nullptr, &column_.span()));
  }

  const TestPlane& plane(PlaneKind kind) const { return kind == PlaneKind::kRow ? row_ : column_; }
  const TensorAmax& amax() const { return amax_; }

  std::vector<uint8_t> payload(PlaneKind kind) const { return plane(kind).payload(); }
  std::vector<uint8_t> scales(PlaneKind kind) const { return plane(kind).scales(); }

  std::vector<float> values(PlaneKind kind) const {
    std::vector<float> values(At(shape_.elements()));
    const MutableMatrixView matrix = {values.data(), DType::kF32, shape_.out, shape_.in};
    PW_EXPECT_OK(quantizer_.Dequantize(plane(kind).const_span(), matrix, AllRows(matrix)));
    return values;
  }

  static PlaneLayout LayoutOf(const QuantizeSpec& spec, PlaneKind kind, MatrixShape shape) {
    PlaneLayout layout = *LayoutFor(spec, kind, shape);
    if (!IsPerTensor(spec.format) || kind == PlaneKind::kRow) return layout;
    layout = *PlaneLayoutFor(spec.format, spec.geometry, kind, shape, DType::kBF16,
                             {.amax_history_length = 1, .stores_per_tensor_column = true});
    layout.payload_dtype = spec.element;
    return layout;
  }

 private:
  const Quantizer& quantizer_;
  MatrixShape shape_;
  TensorAmax amax_;
  TestPlane row_;
  TestPlane column_;
};

// Equal bits, so that -0 is not 0; NaN equals NaN, all of them being one.
void ExpectSameValues(const std::vector<float>& values, const std::vector<float>& want) {
  ASSERT_EQ(values.size(), want.size());
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(values[i]), std::bit_cast<uint32_t>(want[i]))
        << "element " << i << ": " << values[i] << ", expected " << want[i];
  }
}

TestMatrix MatrixOf(const std::vector<float>& values, int64_t rows, int64_t columns) {
  return TestMatrix(DType::kF32, rows, columns, values);
}

std::vector<float> Transposed(const std::vector<float>& values, int64_t rows, int64_t columns) {
  std::vector<float> transposed(values.size());
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      transposed[At(j * rows + i)] = values[At(i * columns + j)];
    }
  }
  return transposed;
}

class QuantizeProperty : public testing::TestWithParam<const Quantizer*> {
 protected:
  const Quantizer& quantizer() const { return *GetParam(); }

  // Whatever the bits: the largest binade is left out, in which rounding up to a code
  // can exceed F32 when it is read back.
  static TestMatrix AnyInput(DType dtype, int64_t rows, int64_t columns, std::mt19937_64& random) {
    const Distribution distribution = kDistributions[random() % std::size(kDistributions)];
    const TestMatrix drawn(dtype, rows, columns, distribution, random);
    std::vector<float> values = drawn.values();
    for (float& value : values) {
      if (std::isfinite(value) && std::fabs(value) > 0x1p126f) value = 1.0f;
    }
    return TestMatrix(dtype, rows, columns, values);
  }
};

// ---- Idempotence ---------------------------------------------------------------

// Values, not codes: a block whose largest code is at most half of the largest one
// comes back with the next smaller scale and doubled codes.
TEST_P(QuantizeProperty, RequantizingKeepsValuesUnderPowersOfTwo) {
  std::mt19937_64 random(TestSeed());
  for (const Case& c : kPowerOfTwoScales) {
    for (const DType dtype : kHighPrecision) {
      for (int repeat = 0; repeat < 6; ++repeat) {
        const TestMatrix src = AnyInput(dtype, 64, 160, random);
        const Planes first(quantizer(), c.spec, src.view());
        for (const PlaneKind kind : kPlanes) {
          SCOPED_TRACE(testing::Message() << c.name << " of " << dtype << " " << kind);
          const std::vector<float> values = first.values(kind);
          const TestMatrix again = MatrixOf(values, 64, 160);
          ExpectSameValues(Planes(quantizer(), c.spec, again.view()).values(kind), values);
          if (HasFailure()) return;
        }
      }
    }
  }
}

// Codes, not values: the largest magnitude comes back within rounding, and with it the
// scale. (Powers of two: the other way round.)
TEST_P(QuantizeProperty, RequantizingKeepsCodesUnderF32Scales) {
  std::mt19937_64 random(TestSeed());
  for (const Case& c : kF32Scales) {
    for (const DType dtype : kHighPrecision) {
      for (int repeat = 0; repeat < 6; ++repeat) {
        const TestMatrix src = AnyInput(dtype, 64, 160, random);
        const Planes first(quantizer(), c.spec, src.view());
        for (const PlaneKind kind : kPlanes) {
          SCOPED_TRACE(testing::Message() << c.name << " of " << dtype << " " << kind);
          const TestMatrix again = MatrixOf(first.values(kind), 64, 160);
          const Planes second(quantizer(), c.spec, again.view());
          EXPECT_THAT(second.payload(kind), SameBytes(first.payload(kind)));
          if (HasFailure()) return;
        }
      }
    }
  }
}

// The scale does not depend on the matrix: codes and values stay.
TEST_P(QuantizeProperty, RequantizingUnderADelayedScaleChangesNothing) {
  std::mt19937_64 random(TestSeed());
  for (const Case& c : kDelayed) {
    for (int repeat = 0; repeat < 6; ++repeat) {
      const TestMatrix src = AnyInput(DType::kBF16, 64, 160, random);
      const Planes first(quantizer(), c.spec, src.view());
      const std::vector<float> values = first.values(PlaneKind::kRow);
      const TestMatrix again = MatrixOf(values, 64, 160);
      const Planes second(quantizer(), c.spec, again.view());
      EXPECT_THAT(second.payload(PlaneKind::kRow), SameBytes(first.payload(PlaneKind::kRow)));
      ExpectSameValues(second.values(PlaneKind::kRow), values);
    }
  }
}

bool AllScalesAreNormal(const TestPlane& plane) {
  constexpr uint8_t kSmallestNormal = 0x08;  // of E4M3: 2^-6
  const PlaneLayout& layout = plane.layout();
  const std::vector<uint8_t> scales = plane.scales();
  for (int64_t i = 0; i < layout.used_scale_rows; ++i) {
    for (int64_t j = 0; j < layout.used_scale_columns; ++j) {
      if (scales[At(i * layout.scale_columns + j)] < kSmallestNormal) return false;
    }
  }
  return true;
}

// NVFP4 keeps codes and block scales as long as those are normal numbers: then the
// largest element of every block has the largest code. The tensor's largest magnitude
// comes back within rounding, and so do values.
TEST_P(QuantizeProperty, RequantizingNvfp4KeepsCodesUnderNormalScales) {
  std::mt19937_64 random(TestSeed());
  for (const Case& c : kNvfp4) {
    for (int repeat = 0; repeat < 6; ++repeat) {
      const TestMatrix src(DType::kBF16, 64, 160, Distribution::kOrdinary, random);
      const Planes first(quantizer(), c.spec, src.view());
      for (const PlaneKind kind : kPlanes) {
        SCOPED_TRACE(testing::Message() << c.name << " " << kind);
        ASSERT_TRUE(AllScalesAreNormal(first.plane(kind)));
        const TestMatrix again = MatrixOf(first.values(kind), 64, 160);
        const Planes second(quantizer(), c.spec, again.view());
        EXPECT_THAT(second.payload(kind), SameBytes(first.payload(kind)));
        EXPECT_THAT(second.scales(kind), SameBytes(first.scales(kind)));
        EXPECT_NEAR(second.amax().row / first.amax().row, 1.0, 0x1p-22);
      }
    }
  }
}

// Where that ends: subnormal scales are so far apart that the largest element of a
// block need not have the largest code, and then asks for another scale when it comes
// back.
TEST_P(QuantizeProperty, RequantizingNvfp4ChangesCodesUnderSubnormalScales) {
  std::vector<float> values(32, 0.0f);
  values[0] = 2688.0f;  // the tensor's: scales are then of block amax / 6
  values[16] = 0x1p-9f * 6.0f * 1.5f;
  const TestMatrix src = MatrixOf(values, 1, 32);
  const Planes first(quantizer(), kNvfp4[0].spec, src.view());
  EXPECT_EQ(first.scales(PlaneKind::kRow)[1], 2);  // of 1.5 steps: a tie
  const std::vector<float> once = first.values(PlaneKind::kRow);
  EXPECT_EQ(once[16], 0x1p-9f * 2.0f * 4.0f);  // 4.5 times the scale
  const TestMatrix again = MatrixOf(once, 1, 32);
  const Planes second(quantizer(), kNvfp4[0].spec, again.view());
  EXPECT_EQ(second.scales(PlaneKind::kRow)[1], 1);  // of 8 / 6 steps
  EXPECT_EQ(second.values(PlaneKind::kRow)[16], 0x1p-9f * 6.0f);
}

// ---- Powers of two -------------------------------------------------------------

// Multiplying a matrix by a power of two changes scales by it and no code, as long as
// nothing leaves the range of F32 and no epsilon decides. A delayed scale has to move
// along.
TEST_P(QuantizeProperty, PowersOfTwoMoveIntoScales) {
  std::mt19937_64 random(TestSeed());
  for (const Case& c : EveryCase()) {
    if (c.spec.amax_epsilon != 0) continue;
    for (const Distribution distribution : {Distribution::kOrdinary, Distribution::kZeros}) {
      SCOPED_TRACE(c.name);
      const int exponent = static_cast<int>(random() % 61) - 30;
      const TestMatrix src(DType::kBF16, 64, 160, distribution, random);
      std::vector<float> moved = src.values();
      for (float& value : moved) value = std::ldexp(value, exponent);
      QuantizeSpec moved_spec = c.spec;
      moved_spec.delayed_scale = std::ldexp(c.spec.delayed_scale, -exponent);
      const TestMatrix moved_src(DType::kBF16, 64, 160, moved);
      const Planes planes(quantizer(), c.spec, src.view());
      const Planes moved_planes(quantizer(), moved_spec, moved_src.view());
      for (const PlaneKind kind : kPlanes) {
        EXPECT_THAT(moved_planes.payload(kind), SameBytes(planes.payload(kind))) << kind;
        std::vector<float> want = planes.values(kind);
        for (float& value : want) value = std::ldexp(value, exponent);
        ExpectSameValues(moved_planes.values(kind), want);
      }
      if (HasFailure()) return;
    }
  }
}

// ---- Transposes ----------------------------------------------------------------

std::vector<uint8_t> UsedScales(const TestPlane& plane, bool transpose) {
  const PlaneLayout& layout = plane.layout();
  const std::vector<uint8_t> scales = plane.scales();
  const int64_t rows = transpose ? layout.used_scale_columns : layout.used_scale_rows;
  const int64_t columns = transpose ? layout.used_scale_rows : layout.used_scale_columns;
  std::vector<uint8_t> used;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      used.push_back(
          scales[At(transpose ? j * layout.scale_columns + i : i * layout.scale_columns + j)]);
    }
  }
  return used;
}

// The column plane of W is the row plane of Wᵀ: for NVFP4, block FP8 and per-tensor
// planes byte for byte, for MXFP8, which does not transpose, in the transposed order.
// Not with stochastic rounding: each plane has words of its own.
TEST_P(QuantizeProperty, TheColumnPlaneIsTheRowPlaneOfTheTranspose) {
  std::mt19937_64 random(TestSeed());
  for (const Case& c : RoundedToNearest()) {
    for (const DType dtype : kHighPrecision) {
      SCOPED_TRACE(testing::Message() << c.name << " of " << dtype);
      const TestMatrix src = AnyInput(dtype, 160, 96, random);
      const TestMatrix transpose(dtype, 96, 160, Transposed(src.values(), 160, 96));
      const Planes planes(quantizer(), c.spec, src.view());
      const Planes of_transpose(quantizer(), c.spec, transpose.view());
      const TestPlane& column = planes.plane(PlaneKind::kColumn);
      const TestPlane& row = of_transpose.plane(PlaneKind::kRow);
      ExpectSameValues(planes.values(PlaneKind::kColumn),
                       Transposed(of_transpose.values(PlaneKind::kRow), 96, 160));
      if (c.spec.format == Format::kMxfp8) {
        EXPECT_EQ(UsedScales(column, true), UsedScales(row, false));
      } else {
        EXPECT_THAT(column.payload(), SameBytes(row.payload()));
        EXPECT_EQ(column.state(), row.state());
        if (!IsPerTensor(c.spec.format)) {
          EXPECT_THAT(column.scales(), SameBytes(row.scales()));
        }
      }
      if (HasFailure()) return;
    }
  }
}

// With a transform it is the row plane of the transformed transpose.
TEST_P(QuantizeProperty, TheTransformedColumnPlaneIsTheRowPlaneOfTheTransformedTranspose) {
  std::mt19937_64 random(TestSeed());
  const TestMatrix src(DType::kBF16, 96, 64, Distribution::kOrdinary, random);
  std::vector<float> transposed = Transposed(src.values(), 96, 64);
  for (size_t first = 0; first < transposed.size(); first += kHadamardBlock) {
    std::array<float, kHadamardBlock> group;
    std::copy_n(transposed.begin() + static_cast<std::ptrdiff_t>(first), group.size(),
                group.begin());
    group = HadamardTransform(group);
    std::copy(group.begin(), group.end(), transposed.begin() + static_cast<std::ptrdiff_t>(first));
  }
  const TestMatrix transformed(DType::kBF16, 64, 96, transposed);
  const Planes planes(quantizer(), kNvfp4OfOperands[0].spec, src.view());
  const Planes want(quantizer(), kNvfp4[0].spec, transformed.view());
  EXPECT_THAT(planes.payload(PlaneKind::kColumn), SameBytes(want.payload(PlaneKind::kRow)));
  EXPECT_THAT(planes.scales(PlaneKind::kColumn), SameBytes(want.scales(PlaneKind::kRow)));
  EXPECT_EQ(planes.amax().column, want.amax().row);
  EXPECT_EQ(planes.plane(PlaneKind::kColumn).state(), want.plane(PlaneKind::kRow).state());
}

// Planes with the same blocks mean the same matrix. Others do not, as soon as elements
// differ so much that small ones lose digits under the scale of large ones.
TEST_P(QuantizeProperty, PlanesThatCanBeDerivedHaveTheSameValues) {
  std::mt19937_64 random(TestSeed());
  for (const Case& c : RoundedToNearest()) {
    SCOPED_TRACE(c.name);
    const TestMatrix src(DType::kBF16, 160, 96, Distribution::kWide, random);
    const Planes planes(quantizer(), c.spec, src.view());
    if (ColumnDerivableFromRow(c.spec.format, c.spec.geometry)) {
      ExpectSameValues(planes.values(PlaneKind::kColumn), planes.values(PlaneKind::kRow));
      // What is recorded of MXFP8 planes holds for both.
      EXPECT_EQ(NonZeroExponents(planes.plane(PlaneKind::kColumn).const_span()),
                NonZeroExponents(planes.plane(PlaneKind::kRow).const_span()));
    } else {
      EXPECT_NE(planes.values(PlaneKind::kColumn), planes.values(PlaneKind::kRow));
    }
  }
}

// ---- Tails, memory, nothing ----------------------------------------------------

// A matrix that ends inside a block is quantized as if zeros followed.
TEST_P(QuantizeProperty, TailsAreAsIfZerosFollowed) {
  std::mt19937_64 random(TestSeed());
  for (const Case& c : EveryCase()) {
    const bool any_columns = c.spec.format == Format::kFp8Block || IsPerTensor(c.spec.format);
    for (const MatrixShape shape : {MatrixShape{33, 96}, {7, 160}, {129, 32}, {131, 45}, {1, 1}}) {
      SCOPED_TRACE(testing::Message() << c.name << " " << shape);
      const bool with_row = any_columns || shape.in % 32 == 0;
      const TestMatrix src = AnyInput(DType::kBF16, shape.out, shape.in, random);
      // Words of stochastic rounding count elements in whole blocks of 16 a row: more
      // than these would move them.
      const int64_t multiple = c.spec.stochastic ? 16 : 256;
      const int64_t rows = RoundUp(shape.out, multiple);
      const int64_t columns = RoundUp(shape.in, multiple);
      std::vector<float> padded(At(rows * columns), 0.0f);
      const std::vector<float> values = src.values();
      for (int64_t i = 0; i < shape.out; ++i) {
        std::copy_n(values.begin() + i * shape.in, shape.in, padded.begin() + i * columns);
      }
      const TestMatrix padded_src(DType::kBF16, rows, columns, padded);
      const Planes planes(quantizer(), c.spec, src.view(), with_row);
      const Planes of_padded(quantizer(), c.spec, padded_src.view());
      EXPECT_EQ(planes.amax(), of_padded.amax());
      for (const PlaneKind kind : kPlanes) {
        if (kind == PlaneKind::kRow && !with_row) continue;
        // Planes of transformed elements have other values, and rows of their own.
        if (kind == PlaneKind::kColumn && c.spec.hadamard_column) continue;
        if (!with_row &&
            (IsPerTensor(c.spec.format) || planes.plane(kind).layout().shares_row_payload)) {
          continue;
        }
        const std::vector<float> all = of_padded.values(kind);
        std::vector<float> want;
        for (int64_t i = 0; i < shape.out; ++i) {
          want.insert(want.end(), all.begin() + i * columns, all.begin() + i * columns + shape.in);
        }
        ExpectSameValues(planes.values(kind), want);
      }
      if (HasFailure()) return;
    }
  }
}

// No byte of a plane, and no value that is read, depends on what was in memory.
TEST_P(QuantizeProperty, WhatMemoryHeldDoesNotMatter) {
  std::mt19937_64 random(TestSeed());
  for (const Case& c : EveryCase()) {
    SCOPED_TRACE(c.name);
    const TestMatrix src = AnyInput(DType::kBF16, 131, 96, random);
    const Planes want(quantizer(), c.spec, src.view());
    for (const uint8_t held : {0x00, 0x5A, 0xFF}) {
      for (const PlaneKind kind : kPlanes) {
        const PlaneLayout& layout = want.plane(kind).layout();
        std::vector<uint8_t> payload(At(layout.payload_bytes), held);
        std::vector<uint8_t> scales(At(layout.scale_bytes), held);
        std::vector<float> state(At(layout.state_elements()), static_cast<float>(held));
        const PlaneSpan span = {layout, payload.data(), scales.data(), state.data()};
        const bool is_row = kind == PlaneKind::kRow;
        PW_ASSERT_OK(quantizer().Quantize(src.view(), c.spec, want.amax(), AllRows(src.view()),
                                          is_row ? &span : nullptr, is_row ? nullptr : &span));
        EXPECT_THAT(payload, SameBytes(want.payload(kind)));
        EXPECT_THAT(scales, SameBytes(want.scales(kind)));
        EXPECT_EQ(state, want.plane(kind).state());
      }
      std::vector<float> values(131 * 96);
      std::memset(values.data(), held, values.size() * sizeof(float));
      const MutableMatrixView matrix = {values.data(), DType::kF32, 131, 96};
      PW_ASSERT_OK(quantizer().Dequantize(want.plane(PlaneKind::kRow).const_span(), matrix,
                                          AllRows(matrix)));
      ExpectSameValues(values, want.values(PlaneKind::kRow));
    }
  }
}

// 0 rows, 0 columns, or neither: no codes, scales that are padding only, and of what a
// tensor has once the value for a largest magnitude of 0.
TEST_P(QuantizeProperty, EmptyMatricesHavePlanes) {
  for (const Case& c : EveryCase()) {
    for (const MatrixShape shape : {MatrixShape{0, 64}, {48, 0}, {0, 0}}) {
      SCOPED_TRACE(testing::Message() << c.name << " " << shape);
      const MatrixView src = {nullptr, DType::kBF16, shape.out, shape.in};
      const Planes planes(quantizer(), c.spec, src);
      EXPECT_EQ(planes.amax(), TensorAmax{});
      for (const PlaneKind kind : kPlanes) {
        EXPECT_EQ(planes.values(kind), std::vector<float>{});
        EXPECT_EQ(planes.payload(kind), std::vector<uint8_t>{});
        std::vector<uint8_t> scales = planes.scales(kind);
        if (IsPerTensor(c.spec.format) && kind == PlaneKind::kRow) {
          const float encode = c.spec.format == Format::kFp8Delayed ? c.spec.delayed_scale
                               : c.spec.amax_epsilon > 0            ? 448.0f / c.spec.amax_epsilon
                                                                    : 1.0f;
          ASSERT_EQ(scales.size(), sizeof(float));
          float decode = 0;
          std::memcpy(&decode, scales.data(), sizeof(decode));
          EXPECT_EQ(decode, 1.0f / encode);
        } else {
          EXPECT_EQ(scales, std::vector<uint8_t>(scales.size(), 0));
        }
        if (c.spec.format == Format::kNvfp4) {
          EXPECT_EQ(planes.plane(kind).state(), std::vector<float>{0.0f});
        }
      }
    }
  }
}

// ---- Error ---------------------------------------------------------------------

// Half a step of the code, which is relative above the smallest normal code and
// absolute below. (Under NVFP4 the scale rounds as well: no such bound.)
TEST_P(QuantizeProperty, ValuesAreWithinHalfAStep) {
  std::mt19937_64 random(TestSeed());
  for (const Case& c : Join(kPowerOfTwoScales, kF32Scales)) {
    SCOPED_TRACE(c.name);
    const double relative = c.spec.element == kE5M2 ? 0x1p-3 : 0x1p-4;
    // Of the largest code, whose block's largest magnitude is at least half of it.
    const double absolute = c.spec.element == kE5M2 ? 0x1p-16 / 57344 : 0x1p-9 / 448;
    const TestMatrix src(DType::kF32, 160, 96, Distribution::kOrdinary, random);
    const std::vector<float> values = src.values();
    const Planes planes(quantizer(), c.spec, src.view());
    for (const PlaneKind kind : kPlanes) {
      const std::vector<float> read = planes.values(kind);
      for (size_t i = 0; i < read.size(); ++i) {
        const double value = values[i];
        const double bound =
            std::max(relative * std::fabs(value), absolute * std::fmax(planes.amax().row, 2));
        ASSERT_LE(std::fabs(static_cast<double>(read[i]) - value), bound * (1 + 0x1p-20))
            << kind << " element " << i << ": " << value;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Quantizers, QuantizeProperty,
                         testing::Values(&ScalarQuantizer(), &VectorQuantizer()),
                         [](const auto& test) { return std::string(test.param->name()); });

}  // namespace
}  // namespace planewise
