#include "core/checkpoint/segment_writer.h"

#include <utility>

#include "core/base/status_macros.h"
#include "core/checkpoint/durable_write.h"
#include "core/checkpoint/format_constants.h"
#include "core/checkpoint/safetensors_writer.h"
#include "core/checkpoint/store_names.h"
#include "core/checkpoint/streaming_checksum.h"

namespace planewise {
namespace {

// Cuts `parts` between weights.
std::vector<absl::Span<const LivePart>> SegmentsOf(const std::vector<LivePart>& parts,
                                                   int64_t target_bytes) {
  std::vector<absl::Span<const LivePart>> segments;
  size_t begin = 0;
  int64_t bytes = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    bytes += static_cast<int64_t>(parts[i].bytes().size());
    const bool last_of_weight = i + 1 == parts.size() || parts[i + 1].weight != parts[i].weight;
    const bool full = bytes >= target_bytes || static_cast<int64_t>(i - begin) >= kSegmentPartsMax;
    if (i + 1 == parts.size() || (last_of_weight && full)) {
      segments.push_back(absl::MakeConstSpan(parts).subspan(begin, i + 1 - begin));
      begin = i + 1;
      bytes = 0;
    }
  }
  return segments;
}

// Appends a part in pieces that the checksum reads from the cache.
absl::StatusOr<uint64_t> AppendPart(SafetensorsWriter& writer, const std::string& name,
                                    absl::Span<const std::byte> bytes, TransferMeter& meter) {
  StreamingChecksum checksum;
  do {
    const absl::Span<const std::byte> piece = bytes.subspan(0, kTransferBytes);
    checksum.Update(piece);
    PW_RETURN_IF_ERROR(writer.Append(piece));
    bytes.remove_prefix(piece.size());
    PW_RETURN_IF_ERROR(meter.Advance(name, static_cast<int64_t>(piece.size())));
  } while (!bytes.empty());
  return checksum.Finish();
}

absl::Status WriteSegment(FileSystem& file_system, const std::string& path, const std::string& file,
                          absl::Span<const LivePart> parts, StoredParts& stored,
                          TransferMeter& meter) {
  std::vector<SafetensorsTensor> tensors;
  absl::flat_hash_map<std::string, absl::Span<const std::byte>> bytes;
  for (const LivePart& part : parts) {
    tensors.push_back(part.tensor());
    bytes[part.name()] = part.bytes();
  }
  PW_ASSIGN_OR_RETURN(const SafetensorsPlan plan, PlanSafetensors(std::move(tensors), {}));
  PW_ASSIGN_OR_RETURN(SafetensorsWriter writer,
                      SafetensorsWriter::Create(file_system, TemporaryPath(path), plan));
  for (const SafetensorsEntry& entry : plan.header.tensors) {
    StoredPart part;
    part.segment = static_cast<int64_t>(stored.segments.size());
    part.offset = entry.offset;
    part.length = entry.length;
    PW_ASSIGN_OR_RETURN(part.checksum, AppendPart(writer, entry.name, bytes.at(entry.name), meter));
    stored.by_name[entry.name] = part;
  }
  PW_RETURN_IF_ERROR(writer.Finish());
  PW_RETURN_IF_ERROR(Publish(file_system, path));
  stored.segments.push_back({file, plan.file_bytes, plan.header.data_offset,
                             ChecksumOf(BytesOf(plan.header_bytes))});
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<StoredParts> WriteSegments(FileSystem& file_system, absl::string_view directory,
                                          WeightVersion version,
                                          const std::vector<LivePart>& parts,
                                          int64_t target_bytes, TransferMeter& meter) {
  StoredParts stored;
  for (const absl::Span<const LivePart> segment : SegmentsOf(parts, target_bytes)) {
    const std::string file =
        SegmentFileName(version, static_cast<int64_t>(stored.segments.size()));
    PW_RETURN_IF_ERROR(
        WriteSegment(file_system, JoinPath(directory, file), file, segment, stored, meter));
  }
  return stored;
}

}  // namespace planewise
