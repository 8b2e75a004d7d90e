#include "proto/status/status_codec.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/error.h"
#include "google/rpc/error_details.pb.h"

namespace planewise {
namespace {

constexpr absl::string_view kPeerReasonKey = "peerReason";

// Bytes of the well-formed UTF-8 sequence that `text` begins with; 0 if it
// begins with none. Overlong forms, surrogates and code points past U+10FFFF
// are not well-formed (RFC 3629).
size_t SequenceBytes(absl::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < size) return 0;
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const uint8_t second = byte(1);
  if (lead == 0xE0 && second < 0xA0) return 0;
  if (lead == 0xED && second > 0x9F) return 0;
  if (lead == 0xF0 && second < 0x90) return 0;
  if (lead == 0xF4 && second > 0x8F) return 0;
  return size;
}

std::string Utf8(absl::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t size = SequenceBytes(text);
    if (size == 0) {
      absl::StrAppendFormat(&out, "\\x%02x", static_cast<uint8_t>(text[0]));
    } else {
      absl::StrAppend(&out, text.substr(0, size));
    }
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return out;
}

// What the error is about, where no violation says so: the first metadata
// entry, since callers name the object first.
std::pair<std::string, std::string> ObjectOf(const ErrorDetails& details) {
  if (details.metadata.empty()) return {};
  return details.metadata.front();
}

google::rpc::ErrorInfo ErrorInfoOf(const ErrorDetails& details) {
  google::rpc::ErrorInfo info;
  info.set_domain(std::string(kErrorDomain));
  info.set_reason(std::string(FactsOf(details.reason).name));
  for (const auto& [key, value] : details.metadata) {
    (*info.mutable_metadata())[Utf8(key)] = Utf8(value);
  }
  return info;
}

// Every code that promises violations carries at least one: the message itself
// if the error named none.
std::vector<Violation> ViolationsOf(const ErrorDetails& details, absl::string_view message) {
  if (!details.violations.empty()) return details.violations;
  const std::string* field = details.Find("field");
  return {{details.reason, field != nullptr ? *field : ObjectOf(details).second,
           std::string(message)}};
}

google::rpc::BadRequest BadRequestOf(const std::vector<Violation>& violations) {
  google::rpc::BadRequest detail;
  for (const Violation& violation : violations) {
    auto& field = *detail.add_field_violations();
    field.set_field(Utf8(violation.subject));
    field.set_description(Utf8(violation.description));
    field.set_reason(std::string(FactsOf(violation.reason).name));
  }
  return detail;
}

google::rpc::PreconditionFailure PreconditionFailureOf(const std::vector<Violation>& violations) {
  google::rpc::PreconditionFailure detail;
  for (const Violation& violation : violations) {
    auto& failure = *detail.add_violations();
    failure.set_type(std::string(FactsOf(violation.reason).name));
    failure.set_subject(Utf8(violation.subject));
    failure.set_description(Utf8(violation.description));
  }
  return detail;
}

google::rpc::QuotaFailure QuotaFailureOf(const std::vector<Violation>& violations) {
  google::rpc::QuotaFailure detail;
  for (const Violation& violation : violations) {
    auto& failure = *detail.add_violations();
    failure.set_subject(Utf8(violation.subject));
    failure.set_description(Utf8(violation.description));
  }
  return detail;
}

google::rpc::ResourceInfo ResourceInfoOf(const ErrorDetails& details, absl::string_view message) {
  google::rpc::ResourceInfo detail;
  const auto [type, name] = ObjectOf(details);
  detail.set_resource_type(Utf8(type));
  detail.set_resource_name(Utf8(name));
  detail.set_description(Utf8(message));
  return detail;
}

google::rpc::RetryInfo RetryInfoOf(int64_t delay_ms) {
  google::rpc::RetryInfo detail;
  detail.mutable_retry_delay()->set_seconds(delay_ms / 1000);
  detail.mutable_retry_delay()->set_nanos(static_cast<int32_t>(delay_ms % 1000) * 1'000'000);
  return detail;
}

void AddDetailOfCode(absl::StatusCode code, const ErrorDetails& details, absl::string_view message,
                     google::rpc::Status& proto) {
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
      proto.add_details()->PackFrom(BadRequestOf(ViolationsOf(details, message)));
      return;
    case absl::StatusCode::kFailedPrecondition:
      proto.add_details()->PackFrom(PreconditionFailureOf(ViolationsOf(details, message)));
      return;
    case absl::StatusCode::kResourceExhausted:
      proto.add_details()->PackFrom(QuotaFailureOf(ViolationsOf(details, message)));
      return;
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kAlreadyExists:
      proto.add_details()->PackFrom(ResourceInfoOf(details, message));
      return;
    default:
      return;
  }
}

void TakeErrorInfo(const google::rpc::ErrorInfo& info, ErrorDetails& details) {
  for (const auto& [key, value] : info.metadata()) details.metadata.emplace_back(key, value);
  // A map has no order of its own; a status must not differ from run to run.
  std::sort(details.metadata.begin(), details.metadata.end());
  if (const std::optional<Reason> reason = ReasonFromName(info.reason())) {
    details.reason = *reason;
  } else {
    details.metadata.emplace_back(kPeerReasonKey, info.reason());
  }
}

}  // namespace

google::rpc::Status StatusToProto(const absl::Status& status) {
  google::rpc::Status proto;
  proto.set_code(static_cast<int32_t>(status.code()));
  if (status.ok()) return proto;
  proto.set_message(Utf8(status.message()));
  std::optional<ErrorDetails> details = DetailsOf(status);
  if (!details) {
    details.emplace();
    details->reason = DefaultReason(status.code());
  }
  proto.add_details()->PackFrom(ErrorInfoOf(*details));
  AddDetailOfCode(status.code(), *details, status.message(), proto);
  if (details->retry_delay_ms) {
    proto.add_details()->PackFrom(RetryInfoOf(*details->retry_delay_ms));
  }
  return proto;
}

absl::Status StatusFromProto(const google::rpc::Status& proto) {
  const auto code = static_cast<absl::StatusCode>(proto.code());
  if (code == absl::StatusCode::kOk) return absl::OkStatus();
  ErrorDetails details;
  details.reason = DefaultReason(code);
  google::rpc::ErrorInfo info;
  google::rpc::BadRequest bad_request;
  google::rpc::PreconditionFailure precondition;
  google::rpc::QuotaFailure quota;
  google::rpc::RetryInfo retry;
  for (const google::protobuf::Any& any : proto.details()) {
    if (any.UnpackTo(&info)) TakeErrorInfo(info, details);
  }
  const auto reason_or_default = [&](const std::string& name) {
    return ReasonFromName(name).value_or(details.reason);
  };
  for (const google::protobuf::Any& any : proto.details()) {
    if (any.UnpackTo(&bad_request)) {
      for (const auto& field : bad_request.field_violations()) {
        details.violations.push_back(
            {reason_or_default(field.reason()), field.field(), field.description()});
      }
    } else if (any.UnpackTo(&precondition)) {
      for (const auto& failure : precondition.violations()) {
        details.violations.push_back(
            {reason_or_default(failure.type()), failure.subject(), failure.description()});
      }
    } else if (any.UnpackTo(&quota)) {
      for (const auto& failure : quota.violations()) {
        details.violations.push_back({details.reason, failure.subject(), failure.description()});
      }
    } else if (any.UnpackTo(&retry)) {
      details.retry_delay_ms =
          retry.retry_delay().seconds() * 1000 + retry.retry_delay().nanos() / 1'000'000;
    }
  }
  // The violation that StatusToProto makes of the message says nothing new.
  if (details.violations.size() == 1 && details.violations[0].description == proto.message()) {
    details.violations.clear();
  }
  return StatusFromDetails(code, proto.message(), details);
}

Reason DefaultReason(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
      return Reason::kInvalidRequest;
    case absl::StatusCode::kNotFound:
      return Reason::kNotFound;
    case absl::StatusCode::kAlreadyExists:
      return Reason::kAlreadyExists;
    case absl::StatusCode::kCancelled:
      return Reason::kCancelled;
    case absl::StatusCode::kResourceExhausted:
      return Reason::kMemoryShortfall;
    case absl::StatusCode::kDeadlineExceeded:
      return Reason::kDeadlineExceeded;
    case absl::StatusCode::kUnavailable:
      return Reason::kUnavailable;
    case absl::StatusCode::kDataLoss:
      return Reason::kCorruptFile;
    case absl::StatusCode::kUnauthenticated:
      return Reason::kUnauthenticated;
    case absl::StatusCode::kPermissionDenied:
      return Reason::kPermissionDenied;
    case absl::StatusCode::kUnimplemented:
      return Reason::kNotSupported;
    default:  // No reason says only FAILED_PRECONDITION, ABORTED or UNKNOWN.
      return Reason::kInternal;
  }
}

}  // namespace planewise
