// Planes of every format against the golden vectors, byte for byte, for each
// quantizer: COVERAGE.md says what is compared.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/numeric/bfloat16.h"
#include "core/quant/hadamard.h"
#include "core/quant/plane_derivation.h"
#include "core/quant/plane_reference.h"
#include "core/quant/quantizer.h"
#include "core/quant/scale_swizzle.h"
#include "core/recipe/recipe_check.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden/golden_files.h"
#include "tests/testing/byte_matchers.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

const std::map<std::string, QuantizeSpec> kSpecs = {
    {"mxfp8", {.format = Format::kMxfp8}},
    {"fp8_block_1x128", {.format = Format::kFp8Block}},
    {"fp8_block_128x128", {.format = Format::kFp8Block, .geometry = BlockGeometry::k2D}},
    {"fp8_current_scaling", {.format = Format::kFp8Current}},
    {"nvfp4_1d", {.format = Format::kNvfp4, .element = DType::kF4E2M1}},
    {"nvfp4_2d",
     {.format = Format::kNvfp4, .geometry = BlockGeometry::k2D, .element = DType::kF4E2M1}},
    {"nvfp4_1d_rht",
     {.format = Format::kNvfp4, .element = DType::kF4E2M1, .hadamard_column = true}},
};

QuantizeSpec SpecOf(const GoldenFile& file) {
  QuantizeSpec spec = kSpecs.at(file.format);
  if (file.element == "e5m2") spec.element = DType::kF8E5M2;
  spec.power_of_two_scales = file.power_of_two_scales;
  spec.amax_epsilon = file.epsilon;
  return spec;
}

struct PlaneCase {
  GoldenFile file;
  const Quantizer* quantizer;
};
std::ostream& operator<<(std::ostream& out, const PlaneCase& test) { return out << test.file; }

std::string CaseName(const testing::TestParamInfo<PlaneCase>& test) {
  return GoldenTestName(test.param.file.name) + "__" + std::string(test.param.quantizer->name());
}

// The files that have `tensor` (large ones carry no "dequantized"), for each
// quantizer.
std::vector<PlaneCase> CasesWith(const std::string& tensor,
                                 const std::vector<const Quantizer*>& quantizers = {
                                     &ScalarQuantizer(), &VectorQuantizer()}) {
  std::vector<PlaneCase> cases;
  for (const GoldenFile& file : GoldenManifest()) {
    if (kSpecs.count(file.format) == 0 || file.tensors.count(tensor) == 0) continue;
    for (const Quantizer* quantizer : quantizers) {
      cases.push_back({file, quantizer});
    }
  }
  return cases;
}

// A plane made by the build, or filled with a file's bytes.
struct PlaneBytes {
  explicit PlaneBytes(const PlaneLayout& plane_layout)
      : layout(plane_layout),
        payload(static_cast<size_t>(layout.payload_bytes), 0xA5),
        scales(static_cast<size_t>(layout.scale_bytes), 0xA5),
        state(static_cast<size_t>(layout.state_elements()), 777.0f) {}

  PlaneSpan span() { return {layout, payload.data(), scales.data(), state.data()}; }

  PlaneLayout layout;
  std::vector<uint8_t> payload;
  std::vector<uint8_t> scales;
  std::vector<float> state;
};

// Files store scales of less than four bytes without padding; planes pad with 0.
std::vector<uint8_t> PadScales(const std::vector<uint8_t>& compact, const PlaneLayout& layout) {
  std::vector<uint8_t> padded(static_cast<size_t>(layout.scale_bytes), 0);
  for (int64_t i = 0; i < layout.used_scale_rows; ++i) {
    std::copy_n(compact.begin() + i * layout.used_scale_columns, layout.used_scale_columns,
                padded.begin() + i * layout.scale_columns);
  }
  return padded;
}

class PlaneGoldenTest : public testing::TestWithParam<PlaneCase> {
 protected:
  void SetUp() override {
    const GoldenFile& golden = GetParam().file;
    ASSERT_THAT(golden.element, testing::AnyOf("e4m3", "e5m2", ""));
    spec_ = SpecOf(golden);
    const GoldenTensorFacts& input = golden.tensors.at("input");
    ASSERT_EQ(input.shape.size(), 2u);
    auto file = OpenGoldenFile(golden.name);
    PW_ASSERT_OK(file);
    file_.emplace(*std::move(file));
    PW_ASSERT_OK_AND_ASSIGN(input_, ReadGoldenTensor<uint8_t>(*file_, "input"));
    source_ = {input_.data(), input.dtype, input.shape[0], input.shape[1]};
  }

  const Quantizer& quantizer() const { return *GetParam().quantizer; }
  bool Has(const std::string& tensor) const { return GetParam().file.tensors.count(tensor) != 0; }

  // The layout that the files have: they hold the transpose of a per-tensor plane.
  PlaneLayout LayoutOf(PlaneKind kind) const {
    const MatrixShape shape = {source_.rows, source_.columns};
    PlaneLayout layout = *LayoutFor(spec_, kind, shape);
    if (kind == PlaneKind::kColumn && IsPerTensor(spec_.format)) {
      layout = *PlaneLayoutFor(spec_.format, spec_.geometry, kind, shape, DType::kBF16,
                               {.stores_per_tensor_column = true});
      layout.payload_dtype = spec_.element;
    }
    return layout;
  }

  // The measured amax, compared with the file's where it has one.
  TensorAmax Amax() const {
    TensorAmax amax;
    PW_EXPECT_OK(quantizer().MeasureAmax(source_, spec_, {true, true}, AllRows(source_), &amax));
    ExpectFloat("amax", amax.row);
    ExpectFloat("amax_rowwise", amax.row);
    ExpectFloat("amax_columnwise", amax.column);
    return amax;
  }

  void ExpectFloat(const std::string& tensor, float value) const {
    if (!Has(tensor)) return;
    EXPECT_THAT(ReadGoldenTensor<float>(*file_, tensor), IsOkAndHolds(testing::ElementsAre(value)))
        << tensor;
  }

  // A side's scales as a plane stores them.
  std::vector<uint8_t> ScalesOf(const std::string& side, const PlaneLayout& layout) const {
    const bool has_storage = Has(side + "_scale_storage");
    const std::vector<uint8_t> scales =
        *ReadGoldenTensor<uint8_t>(*file_, side + (has_storage ? "_scale_storage" : "_scale"));
    return layout.scale_dtype == DType::kF32 ? scales : PadScales(scales, layout);
  }

  void ExpectPlane(const PlaneBytes& plane, const std::string& side) const {
    PW_ASSERT_OK_AND_ASSIGN(const std::vector<uint8_t> data,
                            ReadGoldenTensor<uint8_t>(*file_, side + "_data"));
    EXPECT_THAT(plane.payload, SameBytes(data)) << side;
    if (!plane.layout.shares_row_scales) {
      EXPECT_THAT(plane.scales, SameBytes(ScalesOf(side, plane.layout))) << side;
    }
    for (const float amax : plane.state) ExpectFloat("amax_" + side, amax);
  }

  QuantizeSpec spec_;
  std::optional<SafetensorsReader> file_;
  std::vector<uint8_t> input_;
  MatrixView source_;
};

TEST_P(PlaneGoldenTest, RowPlane) {
  PlaneBytes row(LayoutOf(PlaneKind::kRow));
  const PlaneSpan span = row.span();
  PW_ASSERT_OK(quantizer().Quantize(source_, spec_, Amax(), AllRows(source_), &span, nullptr));
  ExpectPlane(row, "rowwise");
}

// The MXFP8 and NVFP4 files have a column side where the rows are whole blocks.
TEST_P(PlaneGoldenTest, BothPlanesAtOnce) {
  const int64_t block = spec_.format == Format::kMxfp8   ? kMxfp8Block
                        : spec_.format == Format::kNvfp4 ? kNvfp4Block
                                                         : 1;
  EXPECT_EQ(Has("columnwise_data"), source_.rows % block == 0);
  PlaneBytes row(LayoutOf(PlaneKind::kRow));
  PlaneBytes column(LayoutOf(PlaneKind::kColumn));
  const PlaneSpan row_span = row.span();
  const PlaneSpan column_span = column.span();
  PW_ASSERT_OK(
      quantizer().Quantize(source_, spec_, Amax(), AllRows(source_), &row_span, &column_span));
  ExpectPlane(row, "rowwise");
  if (Has("columnwise_data")) ExpectPlane(column, "columnwise");
}

TEST_P(PlaneGoldenTest, ColumnPlaneAlone) {
  if (!Has("columnwise_data")) return;
  PlaneBytes column(LayoutOf(PlaneKind::kColumn));
  const PlaneSpan span = column.span();
  PW_ASSERT_OK(quantizer().Quantize(source_, spec_, Amax(), AllRows(source_), nullptr, &span));
  ExpectPlane(column, "columnwise");
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(PlaneGoldenTest);
INSTANTIATE_TEST_SUITE_P(Golden, PlaneGoldenTest, testing::ValuesIn(CasesWith("input")), CaseName);

class DequantizeGoldenTest : public PlaneGoldenTest {};

TEST_P(DequantizeGoldenTest, RowPlane) {
  PlaneBytes row(LayoutOf(PlaneKind::kRow));
  PW_ASSERT_OK_AND_ASSIGN(row.payload, ReadGoldenTensor<uint8_t>(*file_, "rowwise_data"));
  row.scales = ScalesOf("rowwise", row.layout);
  if (!row.state.empty()) {
    PW_ASSERT_OK_AND_ASSIGN(row.state, ReadGoldenTensor<float>(*file_, "amax_rowwise"));
  }
  PW_ASSERT_OK_AND_ASSIGN(const std::vector<float> want,
                          ReadGoldenTensor<float>(*file_, "dequantized"));
  std::vector<float> values(want.size());
  PW_ASSERT_OK(quantizer().Dequantize(ConstOf(row.span()),
                                      {values.data(), DType::kF32, source_.rows, source_.columns},
                                      AllRows(source_)));
  for (size_t i = 0; i < want.size(); ++i) {
    if (std::isnan(want[i]) && std::isnan(values[i])) continue;
    ASSERT_EQ(std::bit_cast<uint32_t>(values[i]), std::bit_cast<uint32_t>(want[i])) << i;
  }
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DequantizeGoldenTest);
INSTANTIATE_TEST_SUITE_P(Golden, DequantizeGoldenTest, testing::ValuesIn(CasesWith("dequantized")),
                         CaseName);

// ---- Swizzled scales -----------------------------------------------------------

class SwizzleGoldenTest : public PlaneGoldenTest {};

// Both ways, for the sides that the file has. No quantizer takes part.
TEST_P(SwizzleGoldenTest, ScalesOfBothSides) {
  for (const auto& [kind, side] :
       {std::pair{PlaneKind::kRow, "rowwise"}, std::pair{PlaneKind::kColumn, "columnwise"}}) {
    const std::string tensor = std::string(side) + "_scale_swizzled";
    if (!Has(tensor)) continue;
    SCOPED_TRACE(tensor);
    const PlaneLayout layout = LayoutOf(kind);
    PW_ASSERT_OK_AND_ASSIGN(const std::vector<uint8_t> want,
                            ReadGoldenTensor<uint8_t>(*file_, tensor));
    ASSERT_EQ(SwizzledScaleBytes(layout), static_cast<int64_t>(want.size()));
    const std::vector<uint8_t> compact = ScalesOf(side, layout);
    std::vector<uint8_t> swizzled(want.size(), 0xA5);
    PW_ASSERT_OK(SwizzleScales(layout, compact.data(), swizzled.data()));
    EXPECT_THAT(swizzled, SameBytes(want));
    std::vector<uint8_t> back(compact.size(), 0xA5);
    PW_ASSERT_OK(UnswizzleScales(layout, want.data(), back.data()));
    EXPECT_THAT(back, SameBytes(compact));
  }
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SwizzleGoldenTest);
INSTANTIATE_TEST_SUITE_P(Golden, SwizzleGoldenTest,
                         testing::ValuesIn(CasesWith("rowwise_scale_swizzled",
                                                     {&ScalarQuantizer()})),
                         [](const auto& test) { return GoldenTestName(test.param.file.name); });

// ---- Planes made from each other -----------------------------------------------

class DerivationGoldenTest : public PlaneGoldenTest {
 protected:
  // A file's bytes of one side.
  PlaneBytes Side(PlaneKind kind) const {
    const std::string side = kind == PlaneKind::kRow ? "rowwise" : "columnwise";
    PlaneBytes plane(LayoutOf(kind));
    plane.payload = *ReadGoldenTensor<uint8_t>(*file_, side + "_data");
    // A per-tensor column plane is read with the row plane's scale: the files repeat it.
    plane.scales = plane.layout.shares_row_scales
                       ? *ReadGoldenTensor<uint8_t>(*file_, side + "_scale")
                       : ScalesOf(side, plane.layout);
    if (!plane.state.empty()) plane.state = *ReadGoldenTensor<float>(*file_, "amax_" + side);
    return plane;
  }
};

// Of the files whose planes have the same blocks.
TEST_P(DerivationGoldenTest, EachSideFromTheOther) {
  PlaneBytes row = Side(PlaneKind::kRow);
  PlaneBytes column = Side(PlaneKind::kColumn);
  PlaneBytes derived_row(row.layout);
  PlaneBytes derived_column(column.layout);
  PW_ASSERT_OK(DerivePlane(spec_.format, spec_.geometry, ConstOf(row.span()), AllRows(source_),
                           derived_column.span()));
  PW_ASSERT_OK(DerivePlane(spec_.format, spec_.geometry, ConstOf(column.span()), AllRows(source_),
                           derived_row.span()));
  ExpectPlane(derived_column, "columnwise");
  ExpectPlane(derived_row, "rowwise");
}

std::vector<PlaneCase> DerivableCases() {
  std::vector<PlaneCase> cases;
  for (const PlaneCase& test : CasesWith("columnwise_data", {&ScalarQuantizer()})) {
    const QuantizeSpec spec = SpecOf(test.file);
    if (ColumnDerivableFromRow(spec.format, spec.geometry)) cases.push_back(test);
  }
  return cases;
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DerivationGoldenTest);
INSTANTIATE_TEST_SUITE_P(Golden, DerivationGoldenTest, testing::ValuesIn(DerivableCases()),
                         [](const auto& test) { return GoldenTestName(test.param.file.name); });

// ---- The reference of the tests ------------------------------------------------

class ReferenceGoldenTest : public PlaneGoldenTest {};

// What core/quant/format_conformance.h compares with is itself held to the files.
TEST_P(ReferenceGoldenTest, BothPlanesAndTheirValues) {
  const PlaneReference reference(spec_);
  ReferenceMatrix matrix = {source_.dtype, source_.rows, source_.columns, {}};
  if (source_.dtype == DType::kF32) {
    PW_ASSERT_OK_AND_ASSIGN(matrix.values, ReadGoldenTensor<float>(*file_, "input"));
  } else {
    PW_ASSERT_OK_AND_ASSIGN(const auto input, ReadGoldenTensor<BFloat16>(*file_, "input"));
    for (const BFloat16 value : input) matrix.values.push_back(value.ToFloat());
  }
  for (const auto& [kind, side] :
       {std::pair{PlaneKind::kRow, "rowwise"}, std::pair{PlaneKind::kColumn, "columnwise"}}) {
    if (!Has(std::string(side) + "_data")) continue;
    const ReferencePlane made = reference.Quantize(matrix, kind);
    PlaneBytes plane(LayoutOf(kind));
    ASSERT_EQ(made.payload.size(), plane.payload.size());
    plane.payload = made.payload;
    plane.scales = made.scales;
    plane.state = made.state;
    ExpectPlane(plane, side);
    if (kind == PlaneKind::kColumn || !Has("dequantized")) continue;
    const std::vector<float> values =
        reference.Dequantize(made, kind, source_.rows, source_.columns);
    PW_ASSERT_OK_AND_ASSIGN(const std::vector<float> want,
                            ReadGoldenTensor<float>(*file_, "dequantized"));
    ASSERT_EQ(values.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_EQ(ReferenceBits(values[i], DType::kF32), ReferenceBits(want[i], DType::kF32)) << i;
    }
  }
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ReferenceGoldenTest);
INSTANTIATE_TEST_SUITE_P(Golden, ReferenceGoldenTest,
                         testing::ValuesIn(CasesWith("input", {&ScalarQuantizer()})),
                         [](const auto& test) { return GoldenTestName(test.param.file.name); });

// ---- Hadamard transform --------------------------------------------------------

class HadamardGoldenTest : public testing::TestWithParam<GoldenFile> {};

TEST_P(HadamardGoldenTest, EveryGroupOfEveryColumn) {
  PW_ASSERT_OK_AND_ASSIGN(const SafetensorsReader file, OpenGoldenFile(GetParam().name));
  PW_ASSERT_OK_AND_ASSIGN(const auto input, ReadGoldenTensor<BFloat16>(file, "input"));
  PW_ASSERT_OK_AND_ASSIGN(const auto want,
                          ReadGoldenTensor<BFloat16>(file, "rht_columnwise_input"));
  const int64_t rows = GetParam().tensors.at("input").shape[0];
  const int64_t columns = GetParam().tensors.at("input").shape[1];
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t first = 0; first < rows; first += kHadamardBlock) {
      std::array<float, kHadamardBlock> group;
      for (size_t k = 0; k < group.size(); ++k) {
        const int64_t i = first + static_cast<int64_t>(k);
        group[k] = input[static_cast<size_t>(i * columns + j)].ToFloat();
      }
      group = HadamardTransform(group);
      for (size_t k = 0; k < group.size(); ++k) {
        const size_t at = static_cast<size_t>(j * rows + first) + k;
        ASSERT_EQ(BFloat16::FromFloat(group[k]), want[at]) << j << ", " << first << " + " << k;
      }
    }
  }
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(HadamardGoldenTest);
INSTANTIATE_TEST_SUITE_P(Golden, HadamardGoldenTest,
                         testing::ValuesIn(GoldenFilesOf("nvfp4_1d_rht")),
                         [](const auto& test) { return GoldenTestName(test.param.name); });

}  // namespace
}  // namespace planewise
