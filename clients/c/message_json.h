#ifndef PLANEWISE_CLIENTS_C_MESSAGE_JSON_H_
#define PLANEWISE_CLIENTS_C_MESSAGE_JSON_H_
// Protobuf messages as the C interface's JSON: proto3's mapping with the field
// names of the .proto files and with defaults printed.

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"

namespace planewise {

std::string ToJson(const google::protobuf::Message& message);

// INVALID_ARGUMENT / INVALID_REQUEST, also for a field that the message does not have.
absl::Status FromJson(absl::string_view json, google::protobuf::Message& message);

}  // namespace planewise

#endif  // PLANEWISE_CLIENTS_C_MESSAGE_JSON_H_
