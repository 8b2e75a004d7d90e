#include "core/checkpoint/segment_writer.h"

#include <memory>
#include <set>
#include <string>

#include "core/base/memory_file_system.h"
#include "core/checkpoint/safetensors_reader.h"
#include "core/checkpoint/store_test_model.h"
#include "core/checkpoint/streaming_checksum.h"
#include "gmock/gmock.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

TEST(SegmentWriterTest, CutsBetweenWeightsAndRecordsWhereEveryPartIs) {
  MemoryFileSystem fs;
  const std::shared_ptr<MemoryBudget> budget = MemoryBudget::Create(int64_t{1} << 30);
  const ModelVersion model = MakeTestModel("a", WeightVersion(3), 1, *budget);
  const std::vector<LivePart> parts = LivePartsOf(model);
  TransferMeter meter({}, "test", model.stored_bytes());
  // Every weight and bias fills a segment.
  PW_ASSERT_OK_AND_ASSIGN(const StoredParts stored,
                          WriteSegments(fs, "/", WeightVersion(3), parts, 1, meter));
  ASSERT_EQ(stored.segments.size(), 5u);
  EXPECT_EQ(stored.segments[4].file, "00000000000000000003-0004.safetensors");
  ASSERT_EQ(stored.by_name.size(), parts.size());
  for (const LivePart& part : parts) {
    SCOPED_TRACE(part.name());
    const StoredPart& where = stored.by_name.at(part.name());
    const StoredSegment& segment = stored.segments[static_cast<size_t>(where.segment)];
    const std::string bytes = fs.Contents("/" + segment.file);
    EXPECT_EQ(static_cast<int64_t>(bytes.size()), segment.file_bytes);
    EXPECT_EQ(ChecksumOf(BytesOf(bytes).subspan(0, segment.header_bytes)),
              segment.header_checksum);
    EXPECT_EQ(BytesOf(bytes).subspan(where.offset, where.length), part.bytes());
    EXPECT_EQ(where.checksum, ChecksumOf(part.bytes()));
    PW_ASSERT_OK_AND_ASSIGN(const SafetensorsReader reader,
                            SafetensorsReader::Open(fs, "/" + segment.file));
    ASSERT_NE(reader.Find(part.name()), nullptr);
    EXPECT_EQ(reader.Find(part.name())->offset, where.offset);
  }
  // Planes of one weight are not torn apart.
  std::set<int64_t> segments_of_q;
  for (const LivePart& part : parts) {
    if (part.weight->name == "layers.0.q.weight") {
      segments_of_q.insert(stored.by_name.at(part.name()).segment);
    }
  }
  EXPECT_EQ(segments_of_q.size(), 1u);
}

}  // namespace
}  // namespace planewise
