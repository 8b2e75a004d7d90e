#include "clients/cli/weight_file.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"

namespace planewise {
namespace {

std::string SpoolPath(absl::string_view path) { return absl::StrCat(path, ".spool"); }
std::string PartialPath(absl::string_view path) { return absl::StrCat(path, ".partial"); }

// Codes are bytes to every other reader but E4M3 and E5M2.
absl::StatusOr<DType> DTypeOf(v1::DataType type) {
  switch (type) {
    case v1::DATA_TYPE_F32:
      return DType::kF32;
    case v1::DATA_TYPE_BF16:
      return DType::kBF16;
    case v1::DATA_TYPE_F16:
      return DType::kF16;
    case v1::DATA_TYPE_F8_E4M3:
      return DType::kF8E4M3;
    case v1::DATA_TYPE_F8_E5M2:
      return DType::kF8E5M2;
    case v1::DATA_TYPE_F8_E8M0:
    case v1::DATA_TYPE_U8:
      return DType::kU8;
    default:
      return Error(Reason::kNotSupported,
                   absl::StrCat("data type ", type, " is not known to this program; update it"));
  }
}

// Values have their weight's name, so that what was dequantized can be loaded; what a
// plane stores says of which.
std::string NameOf(const v1::ReadTensorHeader& header, DType dtype) {
  if (header.part() == v1::PLANE_PART_PAYLOAD && IsHighPrecision(dtype)) return header.weight();
  std::string plane;
  switch (header.plane()) {
    case v1::PLANE_ROW:
      plane = "#row";
      break;
    case v1::PLANE_COLUMN:
      plane = "#column";
      break;
    default:
      return header.weight();
  }
  switch (header.part()) {
    case v1::PLANE_PART_SCALES:
      return absl::StrCat(header.weight(), plane, ".scales");
    case v1::PLANE_PART_STATE:
      return absl::StrCat(header.weight(), plane, ".state");
    default:
      return absl::StrCat(header.weight(), plane, ".payload");
  }
}

}  // namespace

WeightFile::WeightFile(FileSystem& file_system, absl::string_view path,
                       std::unique_ptr<WritableFile> spool)
    : file_system_(file_system), path_(path), spool_(std::move(spool)) {}

absl::StatusOr<std::unique_ptr<WeightFile>> WeightFile::Create(FileSystem& file_system,
                                                               absl::string_view path) {
  PW_ASSIGN_OR_RETURN(const bool exists, file_system.Exists(path));
  if (exists) {
    return Error(Reason::kAlreadyExists,
                 absl::StrCat("file ", path, " exists; name another or remove it"));
  }
  PW_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> spool, file_system.Create(SpoolPath(path)));
  return std::unique_ptr<WeightFile>(new WeightFile(file_system, path, std::move(spool)));
}

WeightFile::~WeightFile() {
  spool_.reset();
  // Either may be gone already; there is nobody to tell.
  (void)file_system_.Remove(SpoolPath(path_));
  (void)file_system_.Remove(PartialPath(path_));
}

absl::StatusOr<absl::Span<char>> WeightFile::Begin(const v1::ReadTensorHeader& header) {
  bar_.Show("read", header.weight(), spooled_bytes_, kTotalUnknown);
  memory_.resize(static_cast<size_t>(header.size_bytes()));
  return absl::MakeSpan(memory_);
}

absl::Status WeightFile::End(const v1::ReadTensorHeader& header) {
  Spooled spooled;
  PW_ASSIGN_OR_RETURN(spooled.tensor.dtype, DTypeOf(header.spec().data_type()));
  spooled.tensor.name = NameOf(header, spooled.tensor.dtype);
  spooled.tensor.shape.assign(header.spec().shape().begin(), header.spec().shape().end());
  spooled.offset = spooled_bytes_;
  spooled.size_bytes = header.size_bytes();
  PW_RETURN_IF_ERROR(
      spool_->Append({reinterpret_cast<const std::byte*>(memory_.data()), memory_.size()}));
  spooled_bytes_ += spooled.size_bytes;
  tensors_.push_back(std::move(spooled));
  return absl::OkStatus();
}

const WeightFile::Spooled& WeightFile::Find(absl::string_view name) const {
  return *std::find_if(tensors_.begin(), tensors_.end(),
                       [&](const Spooled& spooled) { return spooled.tensor.name == name; });
}

absl::StatusOr<int64_t> WeightFile::Finish() {
  if (tensors_.empty()) {
    return Error(Reason::kNotFound, "no weight has such a plane; `planewise describe` lists them");
  }
  PW_RETURN_IF_ERROR(spool_->Close());
  spool_.reset();
  std::vector<SafetensorsTensor> tensors;
  for (const Spooled& spooled : tensors_) tensors.push_back(spooled.tensor);
  PW_ASSIGN_OR_RETURN(const SafetensorsPlan plan, PlanSafetensors(std::move(tensors), {}));
  PW_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> spool,
                      file_system_.OpenForRead(SpoolPath(path_)));
  const std::string partial = PartialPath(path_);
  PW_ASSIGN_OR_RETURN(SafetensorsWriter writer,
                      SafetensorsWriter::Create(file_system_, partial, plan));
  int64_t written_bytes = 0;
  for (const SafetensorsEntry& entry : plan.header.tensors) {
    const Spooled& spooled = Find(entry.name);
    bar_.Show("write", entry.name, written_bytes, spooled_bytes_);
    memory_.resize(static_cast<size_t>(spooled.size_bytes));
    const absl::Span<std::byte> bytes(reinterpret_cast<std::byte*>(memory_.data()), memory_.size());
    PW_RETURN_IF_ERROR(spool->Read(spooled.offset, bytes));
    PW_RETURN_IF_ERROR(writer.Append(bytes));
    written_bytes += spooled.size_bytes;
  }
  PW_RETURN_IF_ERROR(writer.Finish());
  PW_RETURN_IF_ERROR(file_system_.Rename(partial, path_));
  return plan.file_bytes;
}

}  // namespace planewise
