#include "core/checkpoint/safetensors_reader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/safetensors_json.h"

namespace planewise {
SafetensorsReader::SafetensorsReader(std::string path, std::unique_ptr<ReadableFile> file,
                                     SafetensorsHeader header)
    : path_(std::move(path)), file_(std::move(file)), header_(std::move(header)) {
  by_name_.reserve(header_.tensors.size());
  for (size_t i = 0; i < header_.tensors.size(); ++i) by_name_[header_.tensors[i].name] = i;
}

absl::StatusOr<SafetensorsReader> SafetensorsReader::Open(FileSystem& file_system,
                                                          absl::string_view path) {
  PW_ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file, file_system.OpenForRead(path));
  PW_ASSIGN_OR_RETURN(const int64_t file_bytes, file->SizeBytes());
  std::string length_field(
      static_cast<size_t>(std::min(kSafetensorsLengthBytes, file_bytes)), '\0');
  PW_RETURN_IF_ERROR(file->Read(0, MutableBytesOf(length_field)));
  PW_ASSIGN_OR_RETURN(const int64_t json_bytes,
                      SafetensorsHeaderLength(path, file_bytes, length_field));
  std::string json(static_cast<size_t>(json_bytes), '\0');
  PW_RETURN_IF_ERROR(file->Read(kSafetensorsLengthBytes, MutableBytesOf(json)));
  PW_ASSIGN_OR_RETURN(SafetensorsHeader header, ParseSafetensorsHeader(path, file_bytes, json));
  return SafetensorsReader(std::string(path), std::move(file), std::move(header));
}

const SafetensorsEntry* SafetensorsReader::Find(absl::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &header_.tensors[found->second];
}

absl::Status SafetensorsReader::Read(const SafetensorsEntry& entry, int64_t offset,
                                     absl::Span<std::byte> destination) const {
  const int64_t size = static_cast<int64_t>(destination.size());
  if (offset < 0 || offset > entry.length || size > entry.length - offset) {
    return Error(Reason::kInvalidCheckpoint,
                 absl::StrCat("\"", path_, "\": tensor \"", ShownTensorName(entry.name),
                              "\" has ", entry.length, " bytes; ", size, " from byte ", offset,
                              " were asked for"))
        .With("file", path_)
        .With("tensor", ShownTensorName(entry.name));
  }
  const absl::Status read = file_->Read(entry.offset + offset, destination);
  if (ReasonOf(read) != Reason::kCorruptFile) return read;
  return Error(Reason::kInvalidCheckpoint,
               absl::StrCat("tensor \"", ShownTensorName(entry.name), "\": ", read.message(),
                            "; the file was changed while it was read"))
      .With("file", path_)
      .With("tensor", ShownTensorName(entry.name));
}

absl::StatusOr<std::vector<std::byte>> SafetensorsReader::ReadWhole(absl::string_view name) const {
  const SafetensorsEntry* entry = Find(name);
  if (entry == nullptr) {
    return Error(Reason::kNotFound, absl::StrCat("\"", path_, "\" has no tensor \"", name, "\""))
        .With("file", path_)
        .With("tensor", name);
  }
  std::vector<std::byte> bytes(static_cast<size_t>(entry->length));
  PW_RETURN_IF_ERROR(Read(*entry, 0, absl::MakeSpan(bytes)));
  return bytes;
}

}  // namespace planewise
