#include "core/checkpoint/store_pointer.h"

#include "core/base/status_macros.h"
#include "core/checkpoint/byte_codec.h"
#include "core/checkpoint/damage.h"
#include "core/checkpoint/format_constants.h"
#include "core/checkpoint/record_file.h"

namespace planewise {
namespace {

Error MalformedBody(absl::string_view path) {
  return Damage(Reason::kCorruptFile, path, kRecordBodyOffset, "no build writes such a body");
}

}  // namespace

std::string EncodeCurrent(const CurrentPointer& current) {
  ByteWriter body;
  body.U64(current.version.value());
  body.U64(static_cast<uint64_t>(current.manifest_bytes));
  body.U64(current.manifest_checksum);
  return EncodeRecord(kCurrentMagic, body.bytes());
}

absl::StatusOr<CurrentPointer> DecodeCurrent(absl::string_view path, absl::string_view bytes) {
  PW_ASSIGN_OR_RETURN(const absl::string_view body, DecodeRecord(path, kCurrentMagic, bytes));
  ByteReader reader(body);
  CurrentPointer current;
  current.version = WeightVersion(reader.U64());
  const uint64_t manifest_bytes = reader.U64();
  current.manifest_checksum = reader.U64();
  const bool names_nothing = current.version == WeightVersion();
  if (!reader.ok() || reader.left() != 0 ||
      manifest_bytes > static_cast<uint64_t>(kManifestBytesMax) ||
      (names_nothing && (manifest_bytes != 0 || current.manifest_checksum != 0))) {
    return MalformedBody(path);
  }
  current.manifest_bytes = static_cast<int64_t>(manifest_bytes);
  return current;
}

std::string EncodeVersions(WeightVersion next) {
  ByteWriter body;
  body.U64(next.value());
  return EncodeRecord(kVersionsMagic, body.bytes());
}

absl::StatusOr<WeightVersion> DecodeVersions(absl::string_view path, absl::string_view bytes) {
  PW_ASSIGN_OR_RETURN(const absl::string_view body, DecodeRecord(path, kVersionsMagic, bytes));
  ByteReader reader(body);
  const WeightVersion next(reader.U64());
  if (!reader.ok() || reader.left() != 0 || next == WeightVersion()) return MalformedBody(path);
  return next;
}

}  // namespace planewise
