#ifndef PLANEWISE_CORE_CHECKPOINT_SAFETENSORS_READER_H_
#define PLANEWISE_CORE_CHECKPOINT_SAFETENSORS_READER_H_
// One safetensors file, open: its tensor table and positioned reads of tensor
// bytes. Nothing is mapped and no tensor is held.
//
// Not here: sharded models (hf_directory.h), what tensors mean.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/file_system.h"
#include "core/checkpoint/safetensors_header.h"

namespace planewise {

// Movable. Reads are thread-safe.
class SafetensorsReader {
 public:
  // Reads and validates the header. INVALID_CHECKPOINT as
  // ParseSafetensorsHeader; else the file system's failures.
  static absl::StatusOr<SafetensorsReader> Open(FileSystem& file_system, absl::string_view path);

  const std::string& path() const { return path_; }
  const SafetensorsHeader& header() const { return header_; }

  // nullptr if there is none of that name.
  const SafetensorsEntry* Find(absl::string_view name) const;

  // Fills `destination` from byte `offset` of the tensor on.
  // INVALID_CHECKPOINT if the range leaves the tensor or the file became
  // shorter since it was opened.
  absl::Status Read(const SafetensorsEntry& entry, int64_t offset,
                    absl::Span<std::byte> destination) const;

  // The whole tensor. NOT_FOUND, naming the file.
  absl::StatusOr<std::vector<std::byte>> ReadWhole(absl::string_view name) const;

 private:
  SafetensorsReader(std::string path, std::unique_ptr<ReadableFile> file,
                    SafetensorsHeader header);

  std::string path_;
  std::unique_ptr<ReadableFile> file_;
  SafetensorsHeader header_;
  absl::flat_hash_map<std::string, size_t> by_name_;  // index into header_.tensors
};

}  // namespace planewise

#endif  // PLANEWISE_CORE_CHECKPOINT_SAFETENSORS_READER_H_
