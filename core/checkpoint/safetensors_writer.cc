#include "core/checkpoint/safetensors_writer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/safetensors_json.h"

namespace planewise {
namespace {

constexpr size_t kHeaderAlignmentBytes = 8;

absl::Status CheckName(const std::string& name) {
  const auto refuse = [&](absl::string_view rule) -> absl::Status {
    return Error(Reason::kInvalidRequest,
                 absl::StrCat("tensor \"", ShownTensorName(name), "\" cannot be written: ", rule))
        .With("tensor", ShownTensorName(name));
  };
  if (name.empty()) return refuse("the name is empty");
  if (name == kSafetensorsMetadataKey) return refuse("the name is reserved");
  for (const char c : name) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      return refuse("the name holds a control character");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<SafetensorsEntry> EntryFor(SafetensorsTensor tensor) {
  PW_RETURN_IF_ERROR(CheckName(tensor.name));
  SafetensorsEntry entry;
  int64_t elements = 1;
  for (const int64_t dimension : tensor.shape) {
    if (dimension < 0) {
      return Error(Reason::kInvalidRequest,
                   absl::StrCat("tensor \"", tensor.name, "\": dimension ", dimension,
                                " is negative"))
          .With("tensor", tensor.name);
    }
    PW_ASSIGN_OR_RETURN(elements, CheckedMultiply(elements, dimension));
  }
  const absl::StatusOr<int64_t> length = SizeBytes(tensor.dtype, elements);
  if (!length.ok()) {
    return Annotate(length.status(), absl::StrCat("tensor \"", tensor.name, "\""));
  }
  entry.length = *length;
  entry.name = std::move(tensor.name);
  entry.dtype = tensor.dtype;
  entry.shape = std::move(tensor.shape);
  return entry;
}

// The header's text; entries' offsets count from its end. Throws what
// nlohmann::json throws for strings that are not UTF-8.
std::string HeaderJson(const SafetensorsHeader& header) {
  nlohmann::ordered_json metadata = {{"format", "pt"}};
  for (const auto& [key, value] : header.metadata) metadata[key] = value;
  std::string text = absl::StrCat("{\"", kSafetensorsMetadataKey, "\":", metadata.dump());
  // One by one: adding a key to one ordered document looks at all before it.
  for (const SafetensorsEntry& entry : header.tensors) {
    const nlohmann::ordered_json value = {
        {"dtype", std::string(Name(entry.dtype))},
        {"shape", entry.shape},
        {"data_offsets", {entry.offset, entry.offset + entry.length}},
    };
    absl::StrAppend(&text, ",", nlohmann::json(entry.name).dump(), ":", value.dump());
  }
  text.push_back('}');
  return text;
}

// The length field and the padded text.
absl::StatusOr<std::string> HeaderBytes(const SafetensorsHeader& header) {
  std::string text;
  try {
    text = HeaderJson(header);
  } catch (const nlohmann::json::exception&) {
    return Error(Reason::kInvalidRequest,
                 "a safetensors header holds a name or metadata that is not UTF-8");
  }
  text.append((kHeaderAlignmentBytes - text.size() % kHeaderAlignmentBytes) % kHeaderAlignmentBytes,
              ' ');
  if (static_cast<int64_t>(text.size()) > kSafetensorsHeaderBytesMax) {
    return Error(Reason::kLimitExceeded,
                 absl::StrCat("a safetensors header of ", text.size(), " bytes exceeds ",
                              kSafetensorsHeaderBytesMax, ": write fewer tensors to one file"))
        .With("limitBytes", kSafetensorsHeaderBytesMax);
  }
  std::string bytes(static_cast<size_t>(kSafetensorsLengthBytes), '\0');
  for (int i = 0; i < kSafetensorsLengthBytes; ++i) {
    bytes[i] = static_cast<char>(text.size() >> (8 * i));
  }
  return bytes + text;
}

}  // namespace

absl::StatusOr<SafetensorsPlan> PlanSafetensors(
    std::vector<SafetensorsTensor> tensors,
    std::vector<std::pair<std::string, std::string>> metadata) {
  SafetensorsPlan plan;
  plan.header.metadata = std::move(metadata);
  for (SafetensorsTensor& tensor : tensors) {
    PW_ASSIGN_OR_RETURN(SafetensorsEntry entry, EntryFor(std::move(tensor)));
    plan.header.tensors.push_back(std::move(entry));
  }
  std::set<absl::string_view> names;
  for (const SafetensorsEntry& entry : plan.header.tensors) {
    if (!names.insert(entry.name).second) {
      return Error(Reason::kInvalidRequest,
                   absl::StrCat("tensor \"", entry.name, "\" would be written twice"))
          .With("tensor", entry.name);
    }
  }
  std::sort(plan.header.tensors.begin(), plan.header.tensors.end(),
            [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
              return a.dtype != b.dtype ? a.dtype > b.dtype : a.name < b.name;
            });
  int64_t data_bytes = 0;
  for (SafetensorsEntry& entry : plan.header.tensors) {
    entry.offset = data_bytes;
    PW_ASSIGN_OR_RETURN(data_bytes, CheckedAdd(data_bytes, entry.length));
  }
  PW_ASSIGN_OR_RETURN(plan.header_bytes, HeaderBytes(plan.header));
  plan.header.data_offset = static_cast<int64_t>(plan.header_bytes.size());
  PW_ASSIGN_OR_RETURN(plan.file_bytes, CheckedAdd(plan.header.data_offset, data_bytes));
  for (SafetensorsEntry& entry : plan.header.tensors) entry.offset += plan.header.data_offset;
  return plan;
}

SafetensorsWriter::SafetensorsWriter(std::string path, std::unique_ptr<WritableFile> file,
                                     int64_t left_bytes)
    : path_(std::move(path)), file_(std::move(file)), left_bytes_(left_bytes) {}

absl::StatusOr<SafetensorsWriter> SafetensorsWriter::Create(FileSystem& file_system,
                                                            absl::string_view path,
                                                            const SafetensorsPlan& plan) {
  PW_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, file_system.Create(path));
  PW_RETURN_IF_ERROR(file->Preallocate(plan.file_bytes));
  PW_RETURN_IF_ERROR(file->Append(BytesOf(plan.header_bytes)));
  return SafetensorsWriter(std::string(path), std::move(file),
                           plan.file_bytes - plan.header.data_offset);
}

absl::Status SafetensorsWriter::Append(absl::Span<const std::byte> data) {
  const int64_t size = static_cast<int64_t>(data.size());
  if (size > left_bytes_) {
    return Error(Reason::kInternal, absl::StrCat("\"", path_, "\": ", size,
                                                 " bytes of tensor data where ", left_bytes_,
                                                 " are left to write"));
  }
  left_bytes_ -= size;
  return file_->Append(data);
}

absl::Status SafetensorsWriter::Finish() {
  if (left_bytes_ != 0) {
    return Error(Reason::kInternal,
                 absl::StrCat("\"", path_, "\": ", left_bytes_, " bytes of tensor data missing"));
  }
  PW_RETURN_IF_ERROR(file_->Sync());
  return file_->Close();
}

absl::Status WriteSafetensors(FileSystem& file_system, absl::string_view path,
                              absl::Span<const SafetensorsContent> contents) {
  std::vector<SafetensorsTensor> tensors;
  absl::flat_hash_map<std::string, absl::Span<const std::byte>> bytes;
  for (const SafetensorsContent& content : contents) {
    tensors.push_back(content.tensor);
    bytes[content.tensor.name] = content.bytes;
  }
  PW_ASSIGN_OR_RETURN(const SafetensorsPlan plan, PlanSafetensors(std::move(tensors), {}));
  for (const SafetensorsEntry& entry : plan.header.tensors) {
    const int64_t observed = static_cast<int64_t>(bytes[entry.name].size());
    if (observed != entry.length) {
      return Error(Reason::kShapeMismatch,
                   absl::StrCat("tensor \"", entry.name, "\": ", observed,
                                " bytes were given, its shape requires ", entry.length))
          .With("tensor", entry.name);
    }
  }
  PW_ASSIGN_OR_RETURN(SafetensorsWriter writer,
                      SafetensorsWriter::Create(file_system, path, plan));
  for (const SafetensorsEntry& entry : plan.header.tensors) {
    PW_RETURN_IF_ERROR(writer.Append(bytes[entry.name]));
  }
  return writer.Finish();
}

}  // namespace planewise
