// The golden vectors' directory and elementary conversions, byte for byte:
// COVERAGE.md says what is pinned. A directory given by PLANEWISE_GOLDEN_DIR is held
// to the same.
//
// Not here: planes (plane_golden_test.cc).

#include <bit>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/base/file_system.h"
#include "core/base/posix_file_system.h"
#include "core/numeric/bfloat16.h"
#include "core/numeric/float4_e2m1.h"
#include "core/numeric/float8_e4m3.h"
#include "core/numeric/float8_e5m2.h"
#include "core/numeric/scale_e8m0.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden/golden_files.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

// Formats of the manifest, all of which are pinned.
const std::set<std::string> kFormats = {
    "mxfp8",    "fp8_block_1x128", "fp8_block_128x128", "fp8_current_scaling", "nvfp4_1d",
    "nvfp4_2d", "nvfp4_1d_rht",    "elementary_decode", "elementary_encode",
};

// Another directory may hold some formats only.
bool IsOurDirectory() { return std::getenv("PLANEWISE_GOLDEN_DIR") == nullptr; }

// ---- Every file ----------------------------------------------------------------

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

TEST(GoldenDirectoryTest, EveryFormatIsPinned) {
  std::set<std::string> formats;
  for (const GoldenFile& file : GoldenManifest()) {
    formats.insert(file.format);
    EXPECT_EQ(kFormats.count(file.format), 1u) << file << ": no test knows " << file.format;
  }
  EXPECT_FALSE(formats.empty());
  if (IsOurDirectory()) {
    EXPECT_EQ(formats, kFormats);
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

INSTANTIATE_TEST_SUITE_P(Golden, GoldenFileTest, testing::ValuesIn(GoldenManifest()),
                         [](const auto& test) { return GoldenTestName(test.param.name); });

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
                         testing::ValuesIn(GoldenFilesOf("elementary_decode")),
                         [](const auto& test) { return GoldenTestName(test.param.name); });

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
                         testing::ValuesIn(GoldenFilesOf("elementary_encode")),
                         [](const auto& test) { return GoldenTestName(test.param.name); });

}  // namespace
}  // namespace planewise
