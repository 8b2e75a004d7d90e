#include "core/checkpoint/segment_reader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/damage.h"
#include "core/checkpoint/format_constants.h"
#include "core/checkpoint/streaming_checksum.h"

namespace planewise {

SegmentReader::SegmentReader(std::string path, std::unique_ptr<ReadableFile> file,
                             std::string header_bytes)
    : path_(std::move(path)), file_(std::move(file)), header_bytes_(std::move(header_bytes)) {}

absl::StatusOr<SegmentReader> SegmentReader::Open(FileSystem& file_system,
                                                  absl::string_view directory,
                                                  const StoredSegment& segment) {
  const std::string path = JoinPath(directory, segment.file);
  absl::StatusOr<std::unique_ptr<ReadableFile>> file = file_system.OpenForRead(path);
  if (ReasonOf(file.status()) == Reason::kNotFound) {
    return Damage(Reason::kCorruptFile, path, 0, "the file is missing");
  }
  PW_RETURN_IF_ERROR(file.status());
  PW_ASSIGN_OR_RETURN(const int64_t file_bytes, (*file)->SizeBytes());
  if (file_bytes != segment.file_bytes) {
    return Damage(Reason::kCorruptFile, path, std::min(file_bytes, segment.file_bytes),
                  absl::StrCat("it has ", file_bytes, " bytes; ", segment.file_bytes,
                               " were written"));
  }
  std::string header_bytes(static_cast<size_t>(segment.header_bytes), '\0');
  PW_RETURN_IF_ERROR((*file)->Read(0, MutableBytesOf(header_bytes)));
  if (ChecksumOf(BytesOf(header_bytes)) != segment.header_checksum) {
    return Damage(Reason::kChecksumMismatch, path, 0,
                  absl::StrCat("the checksum of its header of ", segment.header_bytes,
                               " bytes does not match"));
  }
  return SegmentReader(path, *std::move(file), std::move(header_bytes));
}

absl::Status SegmentReader::Read(const StoredPartView& part, absl::Span<std::byte> destination,
                                 TransferMeter& meter) const {
  const StoredPart& stored = *part.stored;
  const std::string name = part.name();
  StreamingChecksum checksum;
  int64_t done = 0;
  do {
    const absl::Span<std::byte> piece =
        destination.subspan(static_cast<size_t>(done), static_cast<size_t>(kTransferBytes));
    PW_RETURN_IF_ERROR(file_->Read(stored.offset + done, piece));
    checksum.Update(piece);
    done += static_cast<int64_t>(piece.size());
    PW_RETURN_IF_ERROR(meter.Advance(name, static_cast<int64_t>(piece.size())));
  } while (done < stored.length);
  const uint64_t observed = checksum.Finish();
  if (observed != stored.checksum) {
    return Damage(Reason::kChecksumMismatch, path_, stored.offset,
                  absl::StrFormat("the %d bytes of \"%s\" have checksum %016x; %016x was written",
                                  stored.length, name, observed, stored.checksum))
        .With("tensor", name);
  }
  return absl::OkStatus();
}

}  // namespace planewise
