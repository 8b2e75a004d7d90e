#include "clients/cli/weight_file.h"

#include <cstring>
#include <string>

#include "core/base/error.h"
#include "core/base/memory_file_system.h"
#include "core/checkpoint/safetensors_reader.h"
#include "gtest/gtest.h"

namespace planewise {
namespace {

v1::ReadTensorHeader Header(const std::string& weight, v1::Plane plane, v1::PlanePart part,
                            v1::DataType type, int64_t rows, int64_t columns) {
  v1::ReadTensorHeader header;
  header.set_weight(weight);
  header.set_plane(plane);
  header.set_part(part);
  header.mutable_spec()->set_data_type(type);
  header.mutable_spec()->add_shape(rows);
  header.mutable_spec()->add_shape(columns);
  header.set_size_bytes(rows * columns);
  return header;
}

void Deliver(WeightFile& file, const v1::ReadTensorHeader& header, char fill) {
  const auto memory = file.Begin(header);
  ASSERT_TRUE(memory.ok());
  std::memset(memory->data(), fill, memory->size());
  ASSERT_TRUE(file.End(header).ok());
}

TEST(WeightFileTest, WritesWhatArrivedUnderItsPlanesNames) {
  MemoryFileSystem file_system;
  {
    auto file = WeightFile::Create(file_system, "w.safetensors");
    ASSERT_TRUE(file.ok()) << file.status();
    Deliver(**file, Header("q", v1::PLANE_ROW, v1::PLANE_PART_SCALES, v1::DATA_TYPE_F8_E8M0, 1, 4),
            'b');
    Deliver(**file, Header("q", v1::PLANE_ROW, v1::PLANE_PART_STATE, v1::DATA_TYPE_U8, 1, 4), 'c');
    Deliver(**file, Header("q", v1::PLANE_ROW, v1::PLANE_PART_PAYLOAD, v1::DATA_TYPE_F8_E4M3, 2, 3),
            'a');
    const auto size_bytes = (*file)->Finish();
    ASSERT_TRUE(size_bytes.ok()) << size_bytes.status();
  }
  const auto reader = SafetensorsReader::Open(file_system, "w.safetensors");
  ASSERT_TRUE(reader.ok()) << reader.status();
  const SafetensorsEntry* const payload = reader->Find("q#row.payload");
  const SafetensorsEntry* const scales = reader->Find("q#row.scales");
  ASSERT_NE(payload, nullptr);
  ASSERT_NE(scales, nullptr);
  EXPECT_NE(reader->Find("q#row.state"), nullptr);
  EXPECT_EQ(payload->dtype, DType::kF8E4M3);
  EXPECT_EQ(scales->dtype, DType::kU8);
  std::string bytes(6, 0);
  ASSERT_TRUE(reader->Read(*payload, 0, {reinterpret_cast<std::byte*>(bytes.data()), 6}).ok());
  EXPECT_EQ(bytes, "aaaaaa");
  EXPECT_EQ(file_system.List(".").value(), std::vector<std::string>{"w.safetensors"});
}

// Dequantized values come from the row plane.
TEST(WeightFileTest, ValuesHaveTheNamesOfTheirWeights) {
  MemoryFileSystem file_system;
  auto file = WeightFile::Create(file_system, "w.safetensors");
  ASSERT_TRUE(file.ok()) << file.status();
  v1::ReadTensorHeader values =
      Header("q", v1::PLANE_ROW, v1::PLANE_PART_PAYLOAD, v1::DATA_TYPE_BF16, 2, 3);
  values.set_size_bytes(2 * 3 * 2);
  Deliver(**file, values, 'a');
  ASSERT_TRUE((*file)->Finish().ok());
  const auto reader = SafetensorsReader::Open(file_system, "w.safetensors");
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_NE(reader->Find("q"), nullptr);
}

TEST(WeightFileTest, LeavesNothingBehindUnlessFinished) {
  MemoryFileSystem file_system;
  {
    auto file = WeightFile::Create(file_system, "w.safetensors");
    ASSERT_TRUE(file.ok());
    EXPECT_EQ(ReasonOf((*file)->Finish().status()), Reason::kNotFound);
  }
  EXPECT_TRUE(file_system.List(".").value().empty());
}

}  // namespace
}  // namespace planewise
