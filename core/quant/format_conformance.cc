#include "core/quant/format_conformance.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/quant/delayed_scaling.h"
#include "core/quant/delayed_scaling_reference.h"
#include "core/quant/edge_matrix.h"
#include "core/quant/plane_reference.h"
#include "core/quant/test_matrix.h"
#include "core/quant/test_plane.h"
#include "core/recipe/recipe.h"
#include "tests/testing/byte_matchers.h"
#include "tests/testing/seed.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

constexpr DType kHighPrecision[] = {DType::kF32, DType::kBF16, DType::kF16};
constexpr OperandRole kRoles[] = {OperandRole::kWeight, OperandRole::kActivation,
                                  OperandRole::kGradient};

// ---- What is quantized ---------------------------------------------------------

struct NamedRecipe {
  std::string name;
  Recipe recipe;
};

// Every format with every field that changes a byte.
std::vector<NamedRecipe> Recipes() {
  std::vector<NamedRecipe> recipes;
  const auto add = [&](std::string name, Format format, auto change) {
    Recipe recipe = DefaultRecipe(format);
    change(recipe);
    recipes.push_back({std::move(name), recipe});
  };
  const auto as_it_is = [](Recipe&) {};
  add("mxfp8", Format::kMxfp8, as_it_is);
  add("mxfp8 2-D", Format::kMxfp8, [](Recipe& r) { r.weight_geometry = BlockGeometry::k2D; });
  add("mxfp8 hybrid", Format::kMxfp8, [](Recipe& r) { r.fp8_format = Fp8Format::kHybrid; });
  add("nvfp4", Format::kNvfp4, as_it_is);
  add("nvfp4 1-D", Format::kNvfp4, [](Recipe& r) { r.weight_geometry = BlockGeometry::k1D; });
  add("nvfp4 without transform", Format::kNvfp4, [](Recipe& r) { r.hadamard = false; });
  add("nvfp4 rounded to nearest", Format::kNvfp4, [](Recipe& r) { r.stochastic_rounding = false; });
  add("block", Format::kFp8Block, as_it_is);
  add("block 1-D", Format::kFp8Block, [](Recipe& r) { r.weight_geometry = BlockGeometry::k1D; });
  add("block F32 scales, epsilon, hybrid", Format::kFp8Block, [](Recipe& r) {
    r.power_of_two_scales = false;
    r.amax_epsilon = 0x1.8p-3f;
    r.fp8_format = Fp8Format::kHybrid;
  });
  add("block 1-D F32 scales", Format::kFp8Block, [](Recipe& r) {
    r.weight_geometry = BlockGeometry::k1D;
    r.power_of_two_scales = false;
  });
  add("current", Format::kFp8Current, as_it_is);
  add("current power of two, epsilon", Format::kFp8Current, [](Recipe& r) {
    r.power_of_two_scales = true;
    r.amax_epsilon = 3.0f;
  });
  add("delayed", Format::kFp8Delayed, [](Recipe& r) { r.amax_history_length = 4; });
  return recipes;
}

struct Shape {
  int64_t rows;
  int64_t columns;
};
// Short blocks, one more and one less than whole ones, padding of every width; and
// nothing.
constexpr Shape kShapes[] = {{33, 160}, {1, 32}, {130, 96}, {0, 64}, {47, 32}, {16, 288}, {5, 0}};
// Columns that are no whole blocks: for column planes, and for formats that take any.
constexpr Shape kRaggedShapes[] = {{33, 7}, {1, 1}, {130, 45}, {64, 129}, {7, 95}};

bool TakesRaggedRows(Format format) { return format == Format::kFp8Block || IsPerTensor(format); }

// The kinds of input, those of every format first.
constexpr size_t kInputs = std::size(kDistributions) + std::size(kEdges);

TestMatrix InputOf(size_t input, const QuantizeSpec& spec, DType dtype, Shape shape,
                   std::mt19937_64& random) {
  if (input < std::size(kDistributions)) {
    return TestMatrix(dtype, shape.rows, shape.columns, kDistributions[input], random);
  }
  return TestMatrix(dtype, shape.rows, shape.columns,
                    EdgeValues(kEdges[input - std::size(kDistributions)], spec, dtype, shape.rows,
                               shape.columns, random));
}

QuantizeSpec SpecOf(const Recipe& recipe, OperandRole role, std::mt19937_64& random) {
  QuantizeSpec spec = QuantizeSpecFor(recipe, role, {random(), random(), random()});
  if (spec.format == Format::kFp8Delayed) {
    spec.delayed_scale =
        std::ldexp(static_cast<float>(random() % 4096 + 1), static_cast<int>(random() % 30) - 20);
  }
  return spec;
}

// ---- Comparing -----------------------------------------------------------------

// The layout of a device that stores the transpose of a per-tensor plane.
PlaneLayout TransposedLayout(const QuantizeSpec& spec, Shape shape) {
  PlaneLayout layout =
      *PlaneLayoutFor(spec.format, spec.geometry, PlaneKind::kColumn, {shape.rows, shape.columns},
                      DType::kBF16, {.amax_history_length = 1, .stores_per_tensor_column = true});
  layout.payload_dtype = spec.element;
  return layout;
}

void ExpectAsReference(const TestPlane& plane, const ReferencePlane& want) {
  if (plane.layout().Stores(PlanePart::kPayload)) {
    EXPECT_THAT(plane.payload(), SameBytes(want.payload)) << plane.layout().kind;
  } else {
    EXPECT_THAT(plane.payload(), testing::IsEmpty());
  }
  if (plane.layout().Stores(PlanePart::kScales)) {
    EXPECT_THAT(plane.scales(), SameBytes(want.scales)) << plane.layout().kind;
  } else {
    EXPECT_THAT(plane.scales(), testing::IsEmpty());
  }
  if (!want.state.empty()) {
    EXPECT_EQ(plane.state(), want.state) << plane.layout().kind;
  }
  EXPECT_TRUE(plane.GuardsIntact()) << plane.layout().kind;
}

uint32_t ElementBits(const std::vector<uint8_t>& bytes, DType dtype, size_t index) {
  uint32_t bits = 0;
  const size_t size = static_cast<size_t>(FactsOf(dtype).bits / 8);
  std::memcpy(&bits, bytes.data() + index * size, size);
  return bits;
}

void ExpectDequantized(const Quantizer& quantizer, const ConstPlaneSpan& plane, Shape shape,
                       const std::vector<float>& want) {
  for (const DType dtype : kHighPrecision) {
    const int64_t element_bytes = FactsOf(dtype).bits / 8;
    GuardedBytes values(shape.rows * shape.columns * element_bytes, element_bytes);
    const MutableMatrixView matrix = {values.data(), dtype, shape.rows, shape.columns};
    PW_ASSERT_OK(quantizer.Dequantize(plane, matrix, AllRows(matrix)));
    EXPECT_TRUE(values.GuardsIntact());
    const std::vector<uint8_t> bytes = values.contents();
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_EQ(ElementBits(bytes, dtype, i), ReferenceBits(want[i], dtype))
          << plane.layout.kind << " plane to " << dtype << ", element " << i << " is to be "
          << want[i];
    }
  }
}

// Everything that one matrix goes through.
class Comparison {
 public:
  Comparison(const Quantizer& quantizer, const QuantizeSpec& spec, const TestMatrix& src)
      : quantizer_(quantizer),
        spec_(spec),
        src_(src.view()),
        shape_{src_.rows, src_.columns},
        reference_(spec),
        matrix_{src_.dtype, src_.rows, src_.columns, src.values()} {}

  void Run(bool with_row) {
    PW_ASSERT_OK(quantizer_.MeasureAmax(src_, spec_, {true, true}, AllRows(src_), &amax_));
    EXPECT_EQ(amax_.row, reference_.Amax(matrix_, PlaneKind::kRow));
    EXPECT_EQ(amax_.column, reference_.Amax(matrix_, PlaneKind::kColumn));

    const ReferencePlane want_row = reference_.Quantize(matrix_, PlaneKind::kRow);
    const ReferencePlane want_column = reference_.Quantize(matrix_, PlaneKind::kColumn);
    const TestPlane row(LayoutOf(PlaneKind::kRow));
    const TestPlane column(LayoutOf(PlaneKind::kColumn), &row);
    Quantize(with_row ? &row : nullptr, &column);
    ExpectAsReference(column, want_column);
    if (with_row) ExpectAsReference(row, want_row);

    const TestPlane alone(LayoutOf(PlaneKind::kColumn));
    Quantize(nullptr, &alone);
    ExpectAsReference(alone, want_column);
    if (with_row) {
      const TestPlane row_alone(LayoutOf(PlaneKind::kRow));
      Quantize(&row_alone, nullptr);
      ExpectAsReference(row_alone, want_row);
      ExpectDequantized(quantizer_, row.const_span(), shape_, Values(want_row, PlaneKind::kRow));
    }
    const bool readable = with_row || column.layout().Stores(PlanePart::kPayload);
    if (readable && !spec_.hadamard_column) {
      ExpectDequantized(quantizer_, column.const_span(), shape_,
                        Values(want_column, PlaneKind::kColumn));
    }
    if (IsPerTensor(spec_.format)) {
      const TestPlane transposed(TransposedLayout(spec_, shape_), &row);
      Quantize(&row, &transposed);
      ExpectAsReference(transposed, want_column);
      ExpectDequantized(quantizer_, transposed.const_span(), shape_,
                        Values(want_column, PlaneKind::kColumn));
    }
  }

 private:
  PlaneLayout LayoutOf(PlaneKind kind) const {
    return *LayoutFor(spec_, kind, {shape_.rows, shape_.columns});
  }

  std::vector<float> Values(const ReferencePlane& plane, PlaneKind kind) const {
    return reference_.Dequantize(plane, kind, shape_.rows, shape_.columns);
  }

  void Quantize(const TestPlane* row, const TestPlane* column) const {
    PW_EXPECT_OK(quantizer_.Quantize(src_, spec_, amax_, AllRows(src_),
                                     row != nullptr ? &row->span() : nullptr,
                                     column != nullptr ? &column->span() : nullptr));
  }

  const Quantizer& quantizer_;
  QuantizeSpec spec_;
  MatrixView src_;
  Shape shape_;
  PlaneReference reference_;
  ReferenceMatrix matrix_;
  TensorAmax amax_;
};

// Takes one after another, and so all of them.
template <typename Value, size_t kCount>
const Value& Next(const Value (&values)[kCount], size_t& turn) {
  return values[turn++ % kCount];
}

std::string What(const NamedRecipe& recipe, OperandRole role, size_t input, DType dtype,
                 Shape shape) {
  constexpr const char* kRoleNames[] = {"weight", "activation", "gradient"};
  return recipe.name + ", " + kRoleNames[static_cast<size_t>(role)] + " " +
         testing::PrintToString(dtype) + " [" + std::to_string(shape.rows) + ", " +
         std::to_string(shape.columns) + "], input " + std::to_string(input);
}

TEST_P(FormatConformance, PlanesAndTheirValuesEqualTheReference) {
  std::mt19937_64 random(TestSeed());
  size_t dtype_turn = 0;
  size_t shape_turn = 0;
  for (const NamedRecipe& recipe : Recipes()) {
    for (const OperandRole role : kRoles) {
      for (size_t input = 0; input < kInputs; ++input) {
        for (int repeat = 0; repeat < 2; ++repeat) {
          const DType dtype = Next(kHighPrecision, dtype_turn);
          const Shape shape = Next(kShapes, shape_turn);
          SCOPED_TRACE(What(recipe, role, input, dtype, shape));
          const QuantizeSpec spec = SpecOf(recipe.recipe, role, random);
          Comparison(quantizer(), spec, InputOf(input, spec, dtype, shape, random)).Run(true);
          if (HasFailure()) return;  // The first is enough to read.
        }
      }
    }
  }
}

TEST_P(FormatConformance, PlanesOfAnyShapeEqualTheReference) {
  std::mt19937_64 random(TestSeed());
  size_t dtype_turn = 0;
  size_t shape_turn = 0;
  for (const NamedRecipe& recipe : Recipes()) {
    for (const OperandRole role : kRoles) {
      for (size_t input = 0; input < kInputs; ++input) {
        const DType dtype = Next(kHighPrecision, dtype_turn);
        const Shape shape = Next(kRaggedShapes, shape_turn);
        SCOPED_TRACE(What(recipe, role, input, dtype, shape));
        const QuantizeSpec spec = SpecOf(recipe.recipe, role, random);
        Comparison(quantizer(), spec, InputOf(input, spec, dtype, shape, random))
            .Run(TakesRaggedRows(recipe.recipe.format));
        if (HasFailure()) return;
      }
    }
  }
}

// More rows than a part has: the whole is the same in parts, in any order.
TEST_P(FormatConformance, PartsOfRowsGiveTheBytesOfTheReference) {
  std::mt19937_64 random(TestSeed());
  size_t dtype_turn = 0;
  constexpr RowRange kParts[] = {{256, 14}, {0, 128}, {128, 128}};
  for (const NamedRecipe& recipe : Recipes()) {
    for (const OperandRole role : kRoles) {
      const DType dtype = Next(kHighPrecision, dtype_turn);
      SCOPED_TRACE(What(recipe, role, 0, dtype, {270, 96}));
      const QuantizeSpec spec = SpecOf(recipe.recipe, role, random);
      const TestMatrix src(dtype, 270, 96, Distribution::kOrdinary, random);
      TensorAmax amax;
      for (const RowRange part : kParts) {
        PW_ASSERT_OK(quantizer().MeasureAmax(src.view(), spec, {true, true}, part, &amax));
      }
      const TestPlane row(*LayoutFor(spec, PlaneKind::kRow, {270, 96}));
      const TestPlane column(*LayoutFor(spec, PlaneKind::kColumn, {270, 96}), &row);
      for (const RowRange part : kParts) {
        PW_ASSERT_OK(
            quantizer().Quantize(src.view(), spec, amax, part, &row.span(), &column.span()));
      }
      const PlaneReference reference(spec);
      const ReferenceMatrix matrix = {dtype, 270, 96, src.values()};
      ExpectAsReference(row, reference.Quantize(matrix, PlaneKind::kRow));
      ExpectAsReference(column, reference.Quantize(matrix, PlaneKind::kColumn));
      if (HasFailure()) return;
    }
  }
}

// Codes and scales that no quantizer makes are read by the same rule: files and
// devices may hold them.
TEST_P(FormatConformance, AnyBytesDequantizeAsTheReference) {
  std::mt19937_64 random(TestSeed());
  const float kAmaxes[] = {1.0f,
                           0.0f,
                           2688.0f,
                           0x1.234568p-60f,
                           0x1p-149f,
                           0x1.fffffep127f,
                           std::numeric_limits<float>::infinity()};
  size_t amax_turn = 0;
  for (const NamedRecipe& recipe : Recipes()) {
    for (const OperandRole role : {OperandRole::kWeight, OperandRole::kGradient}) {
      QuantizeSpec spec = SpecOf(recipe.recipe, role, random);
      spec.hadamard_column = false;  // Planes of other values are read alike.
      for (const PlaneKind kind : {PlaneKind::kRow, PlaneKind::kColumn}) {
        for (const Shape shape : {Shape{160, 256}, {33, 47}}) {
          SCOPED_TRACE(What(recipe, role, 0, DType::kU8, shape) + " " +
                       testing::PrintToString(kind));
          PlaneLayout layout = *LayoutFor(spec, kind, {shape.rows, shape.columns});
          ReferencePlane bytes;
          const MatrixShape matrix = {shape.rows, shape.columns};
          const PlaneLayout row_layout = *LayoutFor(spec, PlaneKind::kRow, matrix);
          bytes.payload.resize(static_cast<size_t>(
              layout.shares_row_payload ? row_layout.payload_bytes : layout.payload_bytes));
          bytes.scales.resize(static_cast<size_t>(layout.shares_row_scales ? row_layout.scale_bytes
                                                                           : layout.scale_bytes));
          for (uint8_t& byte : bytes.payload) byte = static_cast<uint8_t>(random());
          for (uint8_t& byte : bytes.scales) byte = static_cast<uint8_t>(random());
          if (spec.format == Format::kNvfp4) bytes.state = {Next(kAmaxes, amax_turn)};
          // A shared per-tensor payload is not transposed.
          const PlaneKind read_as =
              IsPerTensor(spec.format) && layout.shares_row_payload ? PlaneKind::kRow : kind;
          ExpectDequantized(
              quantizer(), {layout, bytes.payload.data(), bytes.scales.data(), bytes.state.data()},
              shape, PlaneReference(spec).Dequantize(bytes, read_as, shape.rows, shape.columns));
          if (HasFailure()) return;
        }
      }
    }
  }
}

// Steps of a weight: each is quantized with the scale that earlier ones gave.
TEST_P(FormatConformance, DelayedScalingStepsAsTheReference) {
  std::mt19937_64 random(TestSeed());
  for (const DType element : {DType::kF8E4M3, DType::kF8E5M2}) {
    for (const bool most_recent : {false, true}) {
      for (const int margin : {0, 2}) {
        const DelayedScalingRule rule = {element == DType::kF8E4M3 ? 448.0f : 57344.0f, margin,
                                         most_recent};
        DelayedScalingReference reference(3, rule);
        std::vector<float> state(static_cast<size_t>(DelayedStateWords(3)));
        InitializeDelayedState(absl::MakeSpan(state));
        for (int step = 0; step < 12; ++step) {
          SCOPED_TRACE(testing::Message() << element << " most_recent " << most_recent << " margin "
                                          << margin << " step " << step);
          std::vector<float> values;
          const int exponent = static_cast<int>(random() % 40) - 20;
          for (int i = 0; i < 40 * 24; ++i) {
            const float fraction = static_cast<float>(random() % 2001) - 1000.0f;
            values.push_back(std::ldexp(step == 5 ? 0.0f : fraction, exponent));
          }
          if (step == 7) values[100] = std::numeric_limits<float>::infinity();
          const TestMatrix src(DType::kBF16, 40, 24, values);
          const QuantizeSpec spec = {
              .format = Format::kFp8Delayed, .element = element, .delayed_scale = state[0]};
          ASSERT_EQ(state, reference.State());
          Comparison(quantizer(), spec, src).Run(true);

          TensorAmax amax;
          PW_ASSERT_OK(
              quantizer().MeasureAmax(src.view(), spec, {true, true}, AllRows(src.view()), &amax));
          RecordAmax(absl::MakeSpan(state), amax.row);
          UpdateDelayedState(rule, absl::MakeSpan(state));
          const ReferenceMatrix matrix = {DType::kBF16, 40, 24, src.values()};
          reference.Record(PlaneReference(spec).Amax(matrix, PlaneKind::kRow));
          reference.Update();
          if (HasFailure()) return;
        }
      }
    }
  }
}

// Two calls of one session, two weights, and two sessions have words of their own.
TEST_P(FormatConformance, StochasticWordsFollowEveryPartOfTheKey) {
  std::mt19937_64 random(TestSeed());
  const TestMatrix src(DType::kBF16, 32, 64, Distribution::kOrdinary, random);
  const StochasticKey key = {random(), random(), random()};
  const auto payload = [&](const StochasticKey& with) {
    const QuantizeSpec spec = {
        .format = Format::kNvfp4, .element = DType::kF4E2M1, .stochastic = with};
    Comparison(quantizer(), spec, src).Run(true);
    const TestPlane row(*LayoutFor(spec, PlaneKind::kRow, {32, 64}));
    TensorAmax amax;
    PW_EXPECT_OK(
        quantizer().MeasureAmax(src.view(), spec, {true, true}, AllRows(src.view()), &amax));
    PW_EXPECT_OK(
        quantizer().Quantize(src.view(), spec, amax, AllRows(src.view()), &row.span(), nullptr));
    return row.payload();
  };
  const std::vector<uint8_t> first = payload(key);
  EXPECT_EQ(payload(key), first);
  for (StochasticKey other : {StochasticKey{key.session_seed + 1, key.request, key.weight},
                              {key.session_seed, key.request + 1, key.weight},
                              {key.session_seed, key.request, key.weight + 1},
                              {key.session_seed ^ uint64_t{1} << 40, key.request, key.weight},
                              {key.session_seed, key.request ^ uint64_t{1} << 40, key.weight},
                              {key.session_seed, key.request, key.weight ^ uint64_t{1} << 40}}) {
    EXPECT_NE(payload(other), first);
  }
}

}  // namespace
}  // namespace planewise
