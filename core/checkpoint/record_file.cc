#include "core/checkpoint/record_file.h"

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/file_system.h"
#include "core/checkpoint/byte_codec.h"
#include "core/checkpoint/damage.h"
#include "core/checkpoint/format_constants.h"
#include "core/checkpoint/streaming_checksum.h"

namespace planewise {
namespace {

constexpr size_t kMagicBytes = 8;
constexpr size_t kChecksumBytes = kRecordFrameBytes - kRecordBodyOffset;

}  // namespace

std::string EncodeRecord(absl::string_view magic, absl::string_view body) {
  ByteWriter writer;
  writer.Bytes(magic);
  writer.U32(static_cast<uint32_t>(kStoreFormatVersion));
  writer.U32(0);
  writer.U64(body.size());
  writer.Bytes(body);
  writer.U64(ChecksumOf(BytesOf(writer.bytes())));
  return writer.Take();
}

absl::StatusOr<absl::string_view> DecodeRecord(absl::string_view path, absl::string_view magic,
                                               absl::string_view bytes) {
  if (bytes.size() < static_cast<size_t>(kRecordFrameBytes)) {
    return Damage(Reason::kCorruptFile, path, static_cast<int64_t>(bytes.size()),
                   absl::StrCat("it has ", bytes.size(), " bytes; at least ", kRecordFrameBytes,
                                " are required"));
  }
  ByteReader reader(bytes);
  if (reader.Bytes(kMagicBytes) != magic) {
    return Damage(Reason::kCorruptFile, path, 0,
                   absl::StrCat("it does not begin with \"", magic, "\""));
  }
  const uint32_t version = reader.U32();
  const uint32_t zero = reader.U32();
  const uint64_t body_bytes = reader.U64();
  if (body_bytes != bytes.size() - kRecordFrameBytes) {
    return Damage(Reason::kCorruptFile, path, kRecordBodyOffset - 8,
                   absl::StrCat("it states a body of ", body_bytes, " bytes and has ",
                                bytes.size() - kRecordFrameBytes));
  }
  const absl::string_view body = reader.Bytes(body_bytes);
  if (reader.U64() != ChecksumOf(BytesOf(bytes.substr(0, bytes.size() - kChecksumBytes)))) {
    return Damage(Reason::kChecksumMismatch, path, 0,
                   absl::StrCat("the checksum of its ", bytes.size(), " bytes does not match"));
  }
  if (version > kStoreFormatVersion) {
    return Error(Reason::kNotSupported,
                 absl::StrCat("\"", path, "\" has store format version ", version,
                              "; this build reads up to ", kStoreFormatVersion,
                              ": use a newer build"))
        .With("file", path)
        .With("observedFormatVersion", version)
        .With("supportedFormatVersion", kStoreFormatVersion);
  }
  if (version == 0 || zero != 0) {
    return Damage(Reason::kCorruptFile, path, kMagicBytes, "no build writes such a version field");
  }
  return body;
}

}  // namespace planewise
