#ifndef PLANEWISE_CORE_CHECKPOINT_SEGMENT_READER_H_
#define PLANEWISE_CORE_CHECKPOINT_SEGMENT_READER_H_
// One segment file, open: reads parts and compares their checksums.
//
// Not here: what a part means (version_loader.h, version_verifier.h).

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/file_system.h"
#include "core/checkpoint/manifest.h"
#include "core/checkpoint/transfer.h"

namespace planewise {

// Movable. Thread-compatible.
class SegmentReader {
 public:
  // Checks length and header. DATA_LOSS with file and byte offset: it is
  // missing, shorter or longer than recorded, or its header's checksum differs.
  static absl::StatusOr<SegmentReader> Open(FileSystem& file_system, absl::string_view directory,
                                            const StoredSegment& segment);

  const std::string& path() const { return path_; }
  const std::string& header_bytes() const { return header_bytes_; }

  // Fills `destination`, which has the part's length.
  // DATA_LOSS / CHECKSUM_MISMATCH with file and byte offset; the bytes must not
  // be used then. Else as ReadableFile::Read and TransferMeter::Advance.
  absl::Status Read(const StoredPartView& part, absl::Span<std::byte> destination,
                    TransferMeter& meter) const;

 private:
  SegmentReader(std::string path, std::unique_ptr<ReadableFile> file, std::string header_bytes);

  std::string path_;
  std::unique_ptr<ReadableFile> file_;
  std::string header_bytes_;
};

}  // namespace planewise

#endif  // PLANEWISE_CORE_CHECKPOINT_SEGMENT_READER_H_
