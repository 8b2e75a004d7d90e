// The device's row planes are the golden ones, every byte, padding included.
//
// Golden files lie in $PLANEWISE_GOLDEN_DIR, or in tests/golden from where the
// suite is started.

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/posix_file_system.h"
#include "core/checkpoint/safetensors_reader.h"
#include "core/quant/quantizer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/gpu/device_quantize.h"
#include "tests/testing/byte_matchers.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

std::string GoldenDirectory() {
  const char* directory = std::getenv("PLANEWISE_GOLDEN_DIR");
  return directory != nullptr ? directory : "tests/golden";
}

std::vector<std::string> Mxfp8Files() {
  std::vector<std::string> files;
  const auto names = PosixFileSystem().List(GoldenDirectory());
  EXPECT_THAT(names, IsOk());
  if (!names.ok()) return files;
  for (const std::string& name : *names) {
    if (absl::StartsWith(name, "mxfp8__")) {
      files.push_back(absl::StrCat(GoldenDirectory(), "/", name));
    }
  }
  return files;
}

std::vector<uint8_t> BytesOf(const std::vector<std::byte>& bytes) {
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  return {data, data + bytes.size()};
}

// Golden scales are stored without padding: [rows, columns / 32].
std::vector<uint8_t> Padded(const std::vector<uint8_t>& scales, const PlaneLayout& layout) {
  std::vector<uint8_t> padded(static_cast<size_t>(layout.scale_bytes), 0);
  for (int64_t i = 0; i < layout.used_scale_rows; ++i) {
    for (int64_t j = 0; j < layout.used_scale_columns; ++j) {
      padded[i * layout.scale_columns + j] = scales[i * layout.used_scale_columns + j];
    }
  }
  return padded;
}

void CompareWithGolden(const std::string& path) {
  PW_ASSERT_OK_AND_ASSIGN(const SafetensorsReader file,
                          SafetensorsReader::Open(PosixFileSystem(), path));
  const SafetensorsEntry* input = file.Find("input");
  ASSERT_NE(input, nullptr);
  ASSERT_EQ(input->shape.size(), 2u);
  PW_ASSERT_OK_AND_ASSIGN(const std::vector<std::byte> source, file.ReadWhole("input"));
  PW_ASSERT_OK_AND_ASSIGN(const std::vector<std::byte> data, file.ReadWhole("rowwise_data"));
  PW_ASSERT_OK_AND_ASSIGN(const std::vector<std::byte> scale, file.ReadWhole("rowwise_scale"));

  const DType element = absl::StrContains(path, "__e5m2__") ? DType::kF8E5M2 : DType::kF8E4M3;
  const MatrixView view = {source.data(), input->dtype, input->shape[0], input->shape[1]};
  PW_ASSERT_OK_AND_ASSIGN(const PlaneLayout layout,
                          Mxfp8LayoutFor(PlaneKind::kRow, {view.rows, view.columns}, element));
  PW_ASSERT_OK_AND_ASSIGN(const DeviceRowPlane plane, QuantizeOnDevice(view, element));
  EXPECT_THAT(plane.payload, SameBytes(BytesOf(data)));
  EXPECT_THAT(plane.scales, SameBytes(Padded(BytesOf(scale), layout)));
  EXPECT_TRUE(plane.guards_intact);
}

TEST(Mxfp8QuantizeGoldenTest, RowPlanesOfEveryFile) {
  const std::vector<std::string> files = Mxfp8Files();
  // All that there are; fewer would be a suite that looks at nothing.
  EXPECT_EQ(files.size(), 13u);
  for (const std::string& path : files) {
    SCOPED_TRACE(path);
    CompareWithGolden(path);
  }
}

}  // namespace
}  // namespace planewise
