#include "core/checkpoint/safetensors_header.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/safetensors_json.h"

namespace planewise {
namespace {

Error Malformed(absl::string_view path, absl::string_view text) {
  return Error(Reason::kInvalidCheckpoint, absl::StrCat("\"", path, "\": ", text))
      .With("file", path);
}

Error MalformedTensor(absl::string_view path, absl::string_view name, absl::string_view text) {
  const std::string shown = ShownTensorName(name);
  return Malformed(path, absl::StrCat("tensor \"", shown, "\": ", text)).With("tensor", shown);
}

// The first string that occurs twice, or an empty pointer.
const std::string* FirstDoubled(std::vector<const std::string*> strings) {
  std::sort(strings.begin(), strings.end(),
            [](const std::string* a, const std::string* b) { return *a < *b; });
  const auto doubled =
      std::adjacent_find(strings.begin(), strings.end(),
                         [](const std::string* a, const std::string* b) { return *a == *b; });
  return doubled == strings.end() ? nullptr : *doubled;
}

// Zero-length tensors can share offsets, so tiling does not show every double.
absl::Status CheckNamesDistinct(absl::string_view path, const SafetensorsHeader& header) {
  std::vector<const std::string*> names;
  names.reserve(header.tensors.size());
  for (const SafetensorsEntry& entry : header.tensors) names.push_back(&entry.name);
  if (const std::string* doubled = FirstDoubled(std::move(names))) {
    return MalformedTensor(path, *doubled, "the name occurs twice");
  }
  std::vector<const std::string*> keys;
  for (const auto& [key, value] : header.metadata) keys.push_back(&key);
  if (const std::string* doubled = FirstDoubled(std::move(keys))) {
    return Malformed(path, absl::StrCat("__metadata__ key \"", ShownTensorName(*doubled),
                                        "\" occurs twice"));
  }
  return absl::OkStatus();
}

absl::Status CheckLength(absl::string_view path, const SafetensorsEntry& entry) {
  const std::string shape = absl::StrCat("[", absl::StrJoin(entry.shape, ", "), "]");
  int64_t elements = 1;
  for (const int64_t dimension : entry.shape) {
    if (__builtin_mul_overflow(elements, dimension, &elements)) {
      return MalformedTensor(path, entry.name,
                             absl::StrCat("shape ", shape, " has over 2^63 - 1 elements"));
    }
  }
  const absl::StatusOr<int64_t> required = SizeBytes(entry.dtype, elements);
  if (!required.ok()) return MalformedTensor(path, entry.name, required.status().message());
  if (*required != entry.length) {
    return MalformedTensor(path, entry.name,
                           absl::StrCat("data_offsets span ", entry.length, " bytes; ",
                                        Name(entry.dtype), " ", shape, " requires ", *required))
        .With("observedBytes", entry.length)
        .With("requiredBytes", *required);
  }
  return absl::OkStatus();
}

// Entries, sorted by offset within the data, cover it from 0 to its end.
absl::Status CheckTiling(absl::string_view path, const std::vector<SafetensorsEntry>& tensors,
                         int64_t data_bytes) {
  int64_t next = 0;
  for (const SafetensorsEntry& entry : tensors) {
    if (entry.offset != next) {
      return MalformedTensor(path, entry.name,
                             absl::StrCat("begins at data byte ", entry.offset,
                                          ", but the tensor before it ends at ", next,
                                          ": holes and overlaps are not allowed"));
    }
    PW_RETURN_IF_ERROR(CheckLength(path, entry));
    next += entry.length;
  }
  if (next != data_bytes) {
    return Malformed(path, absl::StrCat("tensors end at data byte ", next, ", but ", data_bytes,
                                        " bytes follow the header: trailing bytes are not allowed"))
        .With("observedBytes", data_bytes)
        .With("requiredBytes", next);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<int64_t> SafetensorsHeaderLength(absl::string_view path, int64_t file_bytes,
                                                absl::string_view length_field) {
  if (file_bytes < kSafetensorsLengthBytes ||
      length_field.size() != static_cast<size_t>(kSafetensorsLengthBytes)) {
    return Malformed(path, absl::StrCat("the file has ", file_bytes, " bytes; the length of a ",
                                        "header alone takes ", kSafetensorsLengthBytes));
  }
  uint64_t length = 0;
  for (int i = 0; i < kSafetensorsLengthBytes; ++i) {
    length |= uint64_t{static_cast<uint8_t>(length_field[i])} << (8 * i);
  }
  if (length > static_cast<uint64_t>(kSafetensorsHeaderBytesMax)) {
    return Malformed(path, absl::StrCat("the header claims ", length, " bytes; the limit is ",
                                        kSafetensorsHeaderBytesMax,
                                        ": this is no safetensors file, or a damaged one; copy it "
                                        "again"));
  }
  const int64_t header_end = kSafetensorsLengthBytes + static_cast<int64_t>(length);
  if (header_end > file_bytes) {
    return Malformed(path, absl::StrCat("the header ends at byte ", header_end,
                                        ", the file at ", file_bytes,
                                        ": it is truncated; copy it again"))
        .With("observedBytes", file_bytes)
        .With("requiredBytes", header_end);
  }
  return static_cast<int64_t>(length);
}

absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(absl::string_view path,
                                                         int64_t file_bytes,
                                                         absl::string_view json) {
  SafetensorsHeader header;
  header.data_offset = kSafetensorsLengthBytes + static_cast<int64_t>(json.size());
  const int64_t data_bytes = file_bytes - header.data_offset;
  PW_ASSIGN_OR_RETURN(SafetensorsJson parsed, ParseSafetensorsJson(path, data_bytes, json));
  header.tensors = std::move(parsed.tensors);
  header.metadata = std::move(parsed.metadata);
  PW_RETURN_IF_ERROR(CheckNamesDistinct(path, header));
  std::sort(header.tensors.begin(), header.tensors.end(),
            [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
              return a.offset != b.offset   ? a.offset < b.offset
                     : a.length != b.length ? a.length < b.length
                                            : a.name < b.name;
            });
  PW_RETURN_IF_ERROR(CheckTiling(path, header.tensors, data_bytes));
  for (SafetensorsEntry& entry : header.tensors) entry.offset += header.data_offset;
  return header;
}

}  // namespace planewise
