#include "clients/c/c_error.h"

#include <string>

#include "absl/strings/ascii.h"
#include "core/base/error.h"
#include "core/base/reason.h"
#include "nlohmann/json.hpp"
#include "proto/status/status_codec.h"

struct planewise_error {
  int32_t code = 0;
  std::string code_name;
  std::string reason;
  std::string message;
  const char* retry = "";
  std::string details;
};

namespace planewise {
namespace {

const char* NameOf(Retry retry) {
  switch (retry) {
    case Retry::kSameRequest:
      return "same_request";
    case Retry::kRestartStep:
      return "restart_step";
    case Retry::kNever:
      return "never";
  }
  return "never";
}

std::string DetailsJson(const ErrorDetails& details) {
  nlohmann::ordered_json json;
  json["metadata"] = nlohmann::ordered_json::object();
  for (const auto& [key, value] : details.metadata) json["metadata"][key] = value;
  json["violations"] = nlohmann::ordered_json::array();
  for (const Violation& violation : details.violations) {
    json["violations"].push_back({{"reason", std::string(FactsOf(violation.reason).name)},
                                  {"subject", violation.subject},
                                  {"description", violation.description}});
  }
  if (details.retry_delay_ms) json["retry_delay_ms"] = *details.retry_delay_ms;
  // Text that is not UTF-8 must not throw.
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace

planewise_error* ToCError(const absl::Status& status) {
  if (status.ok()) return nullptr;
  ErrorDetails details;
  details.reason = DefaultReason(status.code());
  details = DetailsOf(status).value_or(details);
  auto* const error = new planewise_error;
  error->code = static_cast<int32_t>(status.code());
  error->code_name = absl::StatusCodeToString(status.code());
  error->reason = std::string(FactsOf(details.reason).name);
  error->message = std::string(status.message());
  error->retry = NameOf(FactsOf(details.reason).retry);
  error->details = DetailsJson(details);
  return error;
}

}  // namespace planewise

int32_t planewise_error_code(const planewise_error* error) { return error->code; }

const char* planewise_error_code_name(const planewise_error* error) {
  return error->code_name.c_str();
}

const char* planewise_error_reason(const planewise_error* error) { return error->reason.c_str(); }

const char* planewise_error_message(const planewise_error* error) { return error->message.c_str(); }

const char* planewise_error_retry(const planewise_error* error) { return error->retry; }

const char* planewise_error_details(const planewise_error* error) { return error->details.c_str(); }

void planewise_error_free(planewise_error* error) { delete error; }
