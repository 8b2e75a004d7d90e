#include "proto/status/grpc_status.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "google/rpc/status.pb.h"
#include "proto/status/status_codec.h"

namespace planewise {
namespace {

constexpr absl::string_view kCut = "... (cut)";
// Enough for a path's tail or a list's head once details must shrink.
constexpr size_t kShortValueBytesMax = 128;

std::string CutTo(size_t bytes_max, absl::string_view text) {
  if (text.size() <= bytes_max) return std::string(text);
  size_t end = bytes_max - kCut.size();
  while (end > 0 && (static_cast<uint8_t>(text[end]) & 0xC0) == 0x80) --end;  // whole characters
  return absl::StrCat(text.substr(0, end), kCut);
}

// google.rpc.Status of `details` with only the first `kept` violations.
google::rpc::Status Encode(absl::StatusCode code, absl::string_view message, ErrorDetails details,
                           size_t kept) {
  if (kept < details.violations.size()) {
    details.metadata.emplace_back("violationsOmitted",
                                  absl::StrCat(details.violations.size() - kept));
    details.violations.resize(kept);
  }
  return StatusToProto(StatusFromDetails(code, message, details));
}

// `status` with fewer violations, and shorter texts if that is not enough, so
// that its google.rpc.Status fits kDetailsBytesMax.
google::rpc::Status FittedProto(const absl::Status& status) {
  const std::string message = CutTo(kMessageBytesMax, status.message());
  std::optional<ErrorDetails> details = DetailsOf(status);
  if (!details) return StatusToProto(absl::Status(status.code(), message));

  size_t kept = details->violations.size();
  google::rpc::Status proto = Encode(status.code(), message, *details, kept);
  while (proto.ByteSizeLong() > kDetailsBytesMax && kept > 1) {
    kept = kept * 3 / 4;
    proto = Encode(status.code(), message, *details, kept);
  }
  if (proto.ByteSizeLong() <= kDetailsBytesMax) return proto;

  for (auto& [key, value] : details->metadata) value = CutTo(kShortValueBytesMax, value);
  for (Violation& violation : details->violations) {
    violation.subject = CutTo(kShortValueBytesMax, violation.subject);
    violation.description = CutTo(kShortValueBytesMax, violation.description);
  }
  return Encode(status.code(), message, *details, kept);
}

}  // namespace

grpc::Status StatusToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const google::rpc::Status proto = FittedProto(status);
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), proto.message(),
                      proto.SerializeAsString());
}

absl::Status StatusFromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  google::rpc::Status proto;
  if (!proto.ParseFromString(status.error_details()) || proto.code() != status.error_code()) {
    proto.Clear();
    proto.set_code(status.error_code());
    proto.set_message(status.error_message());
  }
  return StatusFromProto(proto);
}

}  // namespace planewise
