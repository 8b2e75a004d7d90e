// Golden vectors against this build, byte for byte: COVERAGE.md says what of them
// is pinned. Directories given by PLANEWISE_GOLDEN_DIR are held to the same.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "core/base/file_system.h"
#include "core/base/posix_file_system.h"
#include "core/numeric/bfloat16.h"
#include "core/numeric/float4_e2m1.h"
#include "core/numeric/float8_e4m3.h"
#include "core/numeric/float8_e5m2.h"
#include "core/numeric/scale_e8m0.h"
#include "core/quant/quantizer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden/golden_files.h"
#include "tests/testing/byte_matchers.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

// Formats of the manifest that this build has.
const std::set<std::string> kPinnedFormats = {"mxfp8", "elementary_decode", "elementary_encode"};
// Formats whose files are here for later: only their integrity is checked.
const std::set<std::string> kLaterFormats = {
    "fp8_block_1x128", "fp8_block_128x128", "fp8_current_scaling",
    "nvfp4_1d",        "nvfp4_2d",          "nvfp4_1d_rht",
};

// Another directory may hold some formats only.
bool IsOurDirectory() { return std::getenv("PLANEWISE_GOLDEN_DIR") == nullptr; }

std::vector<GoldenFile> Manifest() {
  const absl::StatusOr<std::vector<GoldenFile>> files = ReadGoldenManifest();
  if (files.ok()) return *files;
  std::cerr << files.status() << std::endl;
  return {};  // GoldenDirectoryTest fails.
}

std::vector<GoldenFile> FilesOf(const std::string& format) {
  std::vector<GoldenFile> selected;
  for (const GoldenFile& file : Manifest()) {
    if (file.format == format) selected.push_back(file);
  }
  return selected;
}

// A test's name: the file's, as far as GoogleTest allows.
std::string TestName(const std::string& file) {
  return absl::StrReplaceAll(file, {{".safetensors", ""}, {"-", "_"}, {".", "_"}});
}

// ---- Every file, also of formats to come -----------------------------------

TEST(GoldenDirectoryTest, HoldsExactlyTheFilesOfTheManifest) {
  PW_ASSERT_OK_AND_ASSIGN(const std::vector<GoldenFile> files, ReadGoldenManifest());
  std::set<std::string> listed;
  for (const GoldenFile& file : files) EXPECT_TRUE(listed.insert(file.name).second) << file;
  PW_ASSERT_OK_AND_ASSIGN(const std::vector<std::string> names,
                          PosixFileSystem().List(GoldenDirectory()));
  std::set<std::string> present;
  for (const std::string& name : names) {
    if (testing::Matches(testing::EndsWith(".safetensors"))(name)) present.insert(name);
  }
  EXPECT_EQ(present, listed);
}

TEST(GoldenDirectoryTest, EveryFormatIsPinnedOrKnownToComeLater) {
  std::set<std::string> formats;
  for (const GoldenFile& file : Manifest()) {
    formats.insert(file.format);
    if (kPinnedFormats.count(file.format) != 0) continue;
    EXPECT_EQ(kLaterFormats.count(file.format), 1u)
        << file << ": format " << file.format << " is neither pinned nor listed as to come";
    std::cout << "present, not pinned: " << file << "\n";
  }
  EXPECT_FALSE(formats.empty());
  if (IsOurDirectory()) {
    EXPECT_THAT(formats, testing::IsSupersetOf(kPinnedFormats));
    EXPECT_THAT(formats, testing::IsSupersetOf(kLaterFormats));
  }
}

class GoldenFileTest : public testing::TestWithParam<GoldenFile> {};

TEST_P(GoldenFileTest, HasTheBytesAndTensorsOfTheManifest) {
  const GoldenFile& golden = GetParam();
  EXPECT_THAT(Sha256OfGoldenFile(golden.name), IsOkAndHolds(golden.sha256));
  PW_ASSERT_OK_AND_ASSIGN(const FileInfo info,
                          PosixFileSystem().Stat(JoinPath(GoldenDirectory(), golden.name)));
  EXPECT_EQ(info.size_bytes, golden.size_bytes);
  PW_ASSERT_OK_AND_ASSIGN(const SafetensorsReader file, OpenGoldenFile(golden.name));
  std::map<std::string, GoldenTensorFacts> tensors;
  for (const SafetensorsEntry& entry : file.header().tensors) {
    tensors[entry.name] = {entry.dtype, entry.shape};
  }
  EXPECT_EQ(tensors, golden.tensors);
}

INSTANTIATE_TEST_SUITE_P(Golden, GoldenFileTest, testing::ValuesIn(Manifest()),
                         [](const auto& test) { return TestName(test.param.name); });

// ---- MXFP8 planes -----------------------------------------------------------

struct Mxfp8Case {
  GoldenFile file;
  const Quantizer* quantizer;
};
std::ostream& operator<<(std::ostream& out, const Mxfp8Case& test) { return out << test.file; }

std::string CaseName(const testing::TestParamInfo<Mxfp8Case>& test) {
  return TestName(test.param.file.name) + "__" + std::string(test.param.quantizer->name());
}

// The files that have `tensor` (large ones carry no "dequantized"), for each
// quantizer.
std::vector<Mxfp8Case> Mxfp8Cases(const std::string& tensor) {
  std::vector<Mxfp8Case> cases;
  for (const GoldenFile& file : FilesOf("mxfp8")) {
    if (file.tensors.count(tensor) == 0) continue;
    for (const Quantizer* quantizer : {&ScalarQuantizer(), &VectorQuantizer()}) {
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
        scales(static_cast<size_t>(layout.scale_bytes), 0xA5) {}

  PlaneSpan span() { return {layout, payload.data(), scales.data()}; }

  PlaneLayout layout;
  std::vector<uint8_t> payload;
  std::vector<uint8_t> scales;
};

// Files store scales without padding; planes pad them with 0.
std::vector<uint8_t> PadScales(const std::vector<uint8_t>& compact, const PlaneLayout& layout) {
  std::vector<uint8_t> padded(static_cast<size_t>(layout.scale_bytes), 0);
  for (int64_t i = 0; i < layout.used_scale_rows; ++i) {
    std::copy_n(compact.begin() + i * layout.used_scale_columns, layout.used_scale_columns,
                padded.begin() + i * layout.scale_columns);
  }
  return padded;
}

class Mxfp8GoldenTest : public testing::TestWithParam<Mxfp8Case> {
 protected:
  void SetUp() override {
    const GoldenFile& golden = GetParam().file;
    element_ = golden.element == "e5m2" ? DType::kF8E5M2 : DType::kF8E4M3;
    ASSERT_THAT(golden.element, testing::AnyOf("e4m3", "e5m2"));
    const GoldenTensorFacts& input = golden.tensors.at("input");
    ASSERT_EQ(input.shape.size(), 2u);
    auto file = OpenGoldenFile(golden.name);
    PW_ASSERT_OK(file);
    file_.emplace(*std::move(file));
    PW_ASSERT_OK_AND_ASSIGN(input_, ReadGoldenTensor<uint8_t>(*file_, "input"));
    source_ = {input_.data(), input.dtype, input.shape[0], input.shape[1]};
  }

  const Quantizer& quantizer() const { return *GetParam().quantizer; }
  bool has_column() const { return GetParam().file.tensors.count("columnwise_data") != 0; }

  absl::StatusOr<PlaneBytes> MakePlane(PlaneKind kind) const {
    absl::StatusOr<PlaneLayout> layout =
        Mxfp8LayoutFor(kind, {source_.rows, source_.columns}, element_);
    if (!layout.ok()) return layout.status();
    return PlaneBytes(*layout);
  }

  void ExpectPlane(const PlaneBytes& plane, const std::string& side) const {
    PW_ASSERT_OK_AND_ASSIGN(const std::vector<uint8_t> data,
                            ReadGoldenTensor<uint8_t>(*file_, side + "_data"));
    PW_ASSERT_OK_AND_ASSIGN(const std::vector<uint8_t> scale,
                            ReadGoldenTensor<uint8_t>(*file_, side + "_scale"));
    const GoldenTensorFacts& scale_facts = GetParam().file.tensors.at(side + "_scale");
    EXPECT_EQ(scale_facts.shape, (std::vector<int64_t>{plane.layout.used_scale_rows,
                                                       plane.layout.used_scale_columns}));
    EXPECT_THAT(plane.payload, SameBytes(data)) << side;
    EXPECT_THAT(plane.scales, SameBytes(PadScales(scale, plane.layout))) << side;
  }

  DType element_ = DType::kF8E4M3;
  std::optional<SafetensorsReader> file_;
  std::vector<uint8_t> input_;
  MatrixView source_;
};

TEST_P(Mxfp8GoldenTest, RowPlane) {
  PW_ASSERT_OK_AND_ASSIGN(PlaneBytes row, MakePlane(PlaneKind::kRow));
  const PlaneSpan span = row.span();
  PW_ASSERT_OK(quantizer().QuantizeMxfp8(source_, element_, &span, nullptr));
  ExpectPlane(row, "rowwise");
}

// The files have a column side where the rows are whole blocks.
TEST_P(Mxfp8GoldenTest, BothPlanesAtOnce) {
  EXPECT_EQ(has_column(), source_.rows % kMxfp8Block == 0);
  PW_ASSERT_OK_AND_ASSIGN(PlaneBytes row, MakePlane(PlaneKind::kRow));
  PW_ASSERT_OK_AND_ASSIGN(PlaneBytes column, MakePlane(PlaneKind::kColumn));
  const PlaneSpan row_span = row.span();
  const PlaneSpan column_span = column.span();
  PW_ASSERT_OK(quantizer().QuantizeMxfp8(source_, element_, &row_span, &column_span));
  ExpectPlane(row, "rowwise");
  if (has_column()) ExpectPlane(column, "columnwise");
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Mxfp8GoldenTest);
INSTANTIATE_TEST_SUITE_P(Golden, Mxfp8GoldenTest, testing::ValuesIn(Mxfp8Cases("input")), CaseName);

class Mxfp8DequantizeGoldenTest : public Mxfp8GoldenTest {};

TEST_P(Mxfp8DequantizeGoldenTest, RowPlane) {
  PW_ASSERT_OK_AND_ASSIGN(PlaneBytes row, MakePlane(PlaneKind::kRow));
  PW_ASSERT_OK_AND_ASSIGN(row.payload, ReadGoldenTensor<uint8_t>(*file_, "rowwise_data"));
  PW_ASSERT_OK_AND_ASSIGN(const std::vector<uint8_t> scale,
                          ReadGoldenTensor<uint8_t>(*file_, "rowwise_scale"));
  row.scales = PadScales(scale, row.layout);
  PW_ASSERT_OK_AND_ASSIGN(const std::vector<float> want,
                          ReadGoldenTensor<float>(*file_, "dequantized"));
  std::vector<float> values(want.size());
  PW_ASSERT_OK(
      quantizer().DequantizeMxfp8({row.layout, row.payload.data(), row.scales.data()}, element_,
                                  {values.data(), DType::kF32, source_.rows, source_.columns}));
  for (size_t i = 0; i < want.size(); ++i) {
    if (std::isnan(want[i]) && std::isnan(values[i])) continue;
    ASSERT_EQ(std::bit_cast<uint32_t>(values[i]), std::bit_cast<uint32_t>(want[i])) << i;
  }
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Mxfp8DequantizeGoldenTest);
INSTANTIATE_TEST_SUITE_P(Golden, Mxfp8DequantizeGoldenTest,
                         testing::ValuesIn(Mxfp8Cases("dequantized")), CaseName);

// ---- Elementary conversions -------------------------------------------------

template <typename Code>
void ExpectDecodeTable(const SafetensorsReader& file, const std::string& tensor,
                       size_t code_count = 256) {
  SCOPED_TRACE(tensor);
  PW_ASSERT_OK_AND_ASSIGN(const std::vector<float> want, ReadGoldenTensor<float>(file, tensor));
  ASSERT_EQ(want.size(), code_count);
  for (size_t code = 0; code < want.size(); ++code) {
    const float value = Code{static_cast<uint8_t>(code)}.ToFloat();
    if (std::isnan(want[code])) {
      EXPECT_TRUE(std::isnan(value)) << code;
    } else {
      EXPECT_EQ(std::bit_cast<uint32_t>(value), std::bit_cast<uint32_t>(want[code])) << code;
    }
  }
}

// Every input of `input` through `encode` gives `tensor`.
template <typename Bits, typename Encode>
void ExpectEncodes(const SafetensorsReader& file, const std::string& input,
                   const std::string& tensor, Encode encode) {
  SCOPED_TRACE(tensor);
  PW_ASSERT_OK_AND_ASSIGN(const std::vector<float> values, ReadGoldenTensor<float>(file, input));
  PW_ASSERT_OK_AND_ASSIGN(const std::vector<Bits> want, ReadGoldenTensor<Bits>(file, tensor));
  ASSERT_EQ(values.size(), want.size());
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(encode(values[i]), want[i]) << "input " << std::hexfloat << values[i];
  }
}

class ElementDecodeGoldenTest : public testing::TestWithParam<GoldenFile> {};

TEST_P(ElementDecodeGoldenTest, EveryCode) {
  PW_ASSERT_OK_AND_ASSIGN(const SafetensorsReader file, OpenGoldenFile(GetParam().name));
  ExpectDecodeTable<Float4E2M1>(file, "e2m1", 16);
  ExpectDecodeTable<Float8E4M3>(file, "e4m3");
  ExpectDecodeTable<Float8E5M2>(file, "e5m2");
  ExpectDecodeTable<ScaleE8M0>(file, "e8m0");
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ElementDecodeGoldenTest);
INSTANTIATE_TEST_SUITE_P(Golden, ElementDecodeGoldenTest,
                         testing::ValuesIn(FilesOf("elementary_decode")),
                         [](const auto& test) { return TestName(test.param.name); });

class ElementEncodeGoldenTest : public testing::TestWithParam<GoldenFile> {};

TEST_P(ElementEncodeGoldenTest, EveryInput) {
  PW_ASSERT_OK_AND_ASSIGN(const SafetensorsReader file, OpenGoldenFile(GetParam().name));
  int checked = 0;
  if (GetParam().tensors.count("e4m3") != 0) {
    ExpectEncodes<uint8_t>(file, "input", "e4m3",
                           [](float value) { return Float8E4M3::FromFloat(value).bits; });
    ExpectEncodes<uint8_t>(file, "input", "e5m2",
                           [](float value) { return Float8E5M2::FromFloat(value).bits; });
    ExpectEncodes<uint16_t>(file, "input", "bf16",
                            [](float value) { return BFloat16::FromFloat(value).bits; });
    ++checked;
  }
  if (GetParam().tensors.count("e8m0_roundup") != 0) {
    ExpectEncodes<uint8_t>(file, "e8m0_input", "e8m0_roundup",
                           [](float value) { return ScaleE8M0::RoundUp(value).bits; });
    ExpectEncodes<uint8_t>(file, "e2m1_input", "e2m1",
                           [](float value) { return Float4E2M1::FromFloat(value).bits; });
    ++checked;
  }
  EXPECT_EQ(checked, 1) << "a file with other tensors than this test knows";
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ElementEncodeGoldenTest);
INSTANTIATE_TEST_SUITE_P(Golden, ElementEncodeGoldenTest,
                         testing::ValuesIn(FilesOf("elementary_encode")),
                         [](const auto& test) { return TestName(test.param.name); });

}  // namespace
}  // namespace planewise
