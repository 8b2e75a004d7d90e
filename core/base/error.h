#ifndef PLANEWISE_CORE_BASE_ERROR_H_
#define PLANEWISE_CORE_BASE_ERROR_H_
// Builds and reads the statuses that users see: a reason, a message, and typed
// details that travel as a payload of absl::Status without any proto.
//
// A message says what failed, observed against required, on which object, and
// what to do:
//   weight "layers.0.q": in_features 712 % 32 = 8; MXFP8 requires a multiple of 32: pad to 736
//
// Not here: the list of reasons (reason.h); google.rpc.Status
// (proto/status/status_codec.h).

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/base/reason.h"

namespace planewise {

// One violated rule. With INVALID_ARGUMENT `subject` is a field path, with
// FAILED_PRECONDITION the tensor or other object.
struct Violation {
  Reason reason = Reason::kInvalidRequest;
  std::string subject;
  std::string description;

  bool operator==(const Violation&) const = default;
};

struct ErrorDetails {
  Reason reason = Reason::kInternal;
  // lowerCamelCase keys with the unit in the key, for example "bytesShort".
  std::vector<std::pair<std::string, std::string>> metadata;
  std::vector<Violation> violations;
  std::optional<int64_t> retry_delay_ms;

  bool operator==(const ErrorDetails&) const = default;

  // The value of `key`, or nullptr.
  const std::string* Find(absl::string_view key) const;
};

// Builds a status; converts to absl::Status or absl::StatusOr on return:
//   return Error(Reason::kNotFound, "model \"a\": not hosted").With("model", "a");
class Error {
 public:
  Error(Reason reason, std::string message);

  Error& With(absl::string_view key, absl::string_view value);
  Error& With(absl::string_view key, int64_t value);
  Error& WithViolation(Violation violation);
  Error& WithRetryDelayMs(int64_t delay_ms);

  operator absl::Status() const;  // NOLINT: `return Error(...)` is the point.
  template <typename T>
  operator absl::StatusOr<T>() const {  // NOLINT
    return static_cast<absl::Status>(*this);
  }

 private:
  std::string message_;
  ErrorDetails details_;
};

// The details of a status made by Error; nullopt for OK and foreign statuses.
std::optional<ErrorDetails> DetailsOf(const absl::Status& status);

// The reason of a status made by Error.
std::optional<Reason> ReasonOf(const absl::Status& status);

// `status` with "context: " before its message; code and details stay.
// Each layer annotates at most once, with action and object.
absl::Status Annotate(const absl::Status& status, absl::string_view context);

// A status with these parts again; used where details crossed the wire.
absl::Status StatusFromDetails(absl::StatusCode code, absl::string_view message,
                               const ErrorDetails& details);

}  // namespace planewise

#endif  // PLANEWISE_CORE_BASE_ERROR_H_
