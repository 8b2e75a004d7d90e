#ifndef PLANEWISE_CORE_CHECKPOINT_SAFETENSORS_WRITER_H_
#define PLANEWISE_CORE_CHECKPOINT_SAFETENSORS_WRITER_H_
// Makes safetensors files that every other reader takes: data by dtype, widest
// first, then by name; header entries in that order; "format": "pt"; the header
// padded with spaces so that tensor bytes begin at a multiple of 8.
//
//   SafetensorsPlan plan = PlanSafetensors({{"w", DType::kBF16, {2, 3}}}, {});
//   writer = SafetensorsWriter::Create(fs, path, plan);
//   for (entry : plan.header.tensors) writer.Append(bytes of entry);
//   writer.Finish();
//
// Not here: checksums and durable names (segment_writer.h).

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/file_system.h"
#include "core/checkpoint/safetensors_header.h"
#include "core/numeric/dtype.h"

namespace planewise {

struct SafetensorsTensor {
  std::string name;
  DType dtype = DType::kU8;
  std::vector<int64_t> shape;
};

struct SafetensorsPlan {
  SafetensorsHeader header;  // tensors in the order their bytes are written
  std::string header_bytes;  // the file's first header.data_offset bytes
  int64_t file_bytes = 0;
};

// INVALID_ARGUMENT for a name that is empty, doubled, "__metadata__", or holds a
// control character or invalid UTF-8; for negative dimensions, overflow, F4 of
// an odd count; for a header over the limit. "format": "pt" is always written;
// `metadata` adds to it.
absl::StatusOr<SafetensorsPlan> PlanSafetensors(
    std::vector<SafetensorsTensor> tensors,
    std::vector<std::pair<std::string, std::string>> metadata);

// Movable. One thread. Destroyed before Finish(), it leaves a partial file.
class SafetensorsWriter {
 public:
  // Creates and preallocates the file and writes its header.
  static absl::StatusOr<SafetensorsWriter> Create(FileSystem& file_system, absl::string_view path,
                                                  const SafetensorsPlan& plan);

  // The next bytes of tensor data, cut anywhere. INTERNAL past the plan's end.
  absl::Status Append(absl::Span<const std::byte> data);

  // Syncs and closes. INTERNAL if bytes are missing.
  absl::Status Finish();

 private:
  SafetensorsWriter(std::string path, std::unique_ptr<WritableFile> file, int64_t left_bytes);

  std::string path_;
  std::unique_ptr<WritableFile> file_;
  int64_t left_bytes_ = 0;
};

// A whole file from tensors in memory; for small files.
struct SafetensorsContent {
  SafetensorsTensor tensor;
  absl::Span<const std::byte> bytes;
};
absl::Status WriteSafetensors(FileSystem& file_system, absl::string_view path,
                              absl::Span<const SafetensorsContent> contents);

}  // namespace planewise

#endif  // PLANEWISE_CORE_CHECKPOINT_SAFETENSORS_WRITER_H_
