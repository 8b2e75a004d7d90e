#include "core/base/error.h"

#include <cstddef>

#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace planewise {
namespace {

constexpr absl::string_view kPayloadUrl = "planewise/ErrorDetails";

// The payload is a list of strings, each after its length: "5:value". Its
// readers are in this process only, so it has no version.
void AppendString(absl::string_view value, std::string& out) {
  absl::StrAppend(&out, value.size(), ":", value);
}

std::optional<std::string> TakeString(absl::string_view& in) {
  const size_t colon = in.find(':');
  uint64_t length = 0;
  if (colon == absl::string_view::npos || !absl::SimpleAtoi(in.substr(0, colon), &length) ||
      length > in.size() - colon - 1) {
    return std::nullopt;
  }
  std::string value(in.substr(colon + 1, length));
  in.remove_prefix(colon + 1 + length);
  return value;
}

std::string Encode(const ErrorDetails& details) {
  std::string out;
  AppendString(FactsOf(details.reason).name, out);
  AppendString(details.retry_delay_ms ? absl::StrCat(*details.retry_delay_ms) : "", out);
  AppendString(absl::StrCat(details.metadata.size()), out);
  for (const auto& [key, value] : details.metadata) {
    AppendString(key, out);
    AppendString(value, out);
  }
  AppendString(absl::StrCat(details.violations.size()), out);
  for (const Violation& violation : details.violations) {
    AppendString(FactsOf(violation.reason).name, out);
    AppendString(violation.subject, out);
    AppendString(violation.description, out);
  }
  return out;
}

// Reads what Encode wrote. A payload that is cut short yields nullopt.
std::optional<ErrorDetails> Decode(absl::string_view in) {
  bool whole = true;
  auto take = [&]() -> std::string {
    std::optional<std::string> value = TakeString(in);
    whole = whole && value.has_value();
    return value.value_or("");
  };
  auto take_count = [&] {
    uint64_t count = 0;
    whole = absl::SimpleAtoi(take(), &count) && whole;
    return whole ? count : 0;
  };
  ErrorDetails details;
  details.reason = ReasonFromName(take()).value_or(Reason::kInternal);
  int64_t delay_ms = 0;
  if (absl::SimpleAtoi(take(), &delay_ms)) details.retry_delay_ms = delay_ms;
  for (uint64_t left = take_count(); left > 0 && whole; --left) {
    std::string key = take();
    details.metadata.emplace_back(std::move(key), take());
  }
  for (uint64_t left = take_count(); left > 0 && whole; --left) {
    Violation violation;
    violation.reason = ReasonFromName(take()).value_or(Reason::kInternal);
    violation.subject = take();
    violation.description = take();
    details.violations.push_back(std::move(violation));
  }
  if (!whole) return std::nullopt;
  return details;
}

}  // namespace

const std::string* ErrorDetails::Find(absl::string_view key) const {
  for (const auto& [name, value] : metadata) {
    if (name == key) return &value;
  }
  return nullptr;
}

Error::Error(Reason reason, std::string message) : message_(std::move(message)) {
  details_.reason = reason;
}

Error& Error::With(absl::string_view key, absl::string_view value) {
  details_.metadata.emplace_back(key, value);
  return *this;
}

Error& Error::With(absl::string_view key, int64_t value) {
  return With(key, absl::StrCat(value));
}

Error& Error::WithViolation(Violation violation) {
  details_.violations.push_back(std::move(violation));
  return *this;
}

Error& Error::WithRetryDelayMs(int64_t delay_ms) {
  details_.retry_delay_ms = delay_ms;
  return *this;
}

Error::operator absl::Status() const {
  return StatusFromDetails(FactsOf(details_.reason).code, message_, details_);
}

std::optional<ErrorDetails> DetailsOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kPayloadUrl);
  if (!payload) return std::nullopt;
  return Decode(std::string(*payload));
}

std::optional<Reason> ReasonOf(const absl::Status& status) {
  const std::optional<ErrorDetails> details = DetailsOf(status);
  if (!details) return std::nullopt;
  return details->reason;
}

absl::Status Annotate(const absl::Status& status, absl::string_view context) {
  if (status.ok()) return status;
  absl::Status annotated(status.code(), absl::StrCat(context, ": ", status.message()));
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    annotated.SetPayload(url, payload);
  });
  return annotated;
}

absl::Status StatusFromDetails(absl::StatusCode code, absl::string_view message,
                               const ErrorDetails& details) {
  absl::Status status(code, message);
  status.SetPayload(kPayloadUrl, absl::Cord(Encode(details)));
  return status;
}

}  // namespace planewise
