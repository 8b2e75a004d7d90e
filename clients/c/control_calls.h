#ifndef PLANEWISE_CLIENTS_C_CONTROL_CALLS_H_
#define PLANEWISE_CLIENTS_C_CONTROL_CALLS_H_
// The client's control calls by name, with JSON for request and response.

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "clients/cpp/client.h"

namespace planewise {

// `request` empty: an empty message. INVALID_ARGUMENT / INVALID_REQUEST: no such method (the
// known ones are listed), or not its request; else what the call gives.
absl::StatusOr<std::string> ControlCall(Client& client, absl::string_view method,
                                        absl::string_view request, const CallOptions& options);

}  // namespace planewise

#endif  // PLANEWISE_CLIENTS_C_CONTROL_CALLS_H_
