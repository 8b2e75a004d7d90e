#include "clients/c/message_json.h"

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "google/protobuf/util/json_util.h"

namespace planewise {

std::string ToJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string json;
  // Fails for google.protobuf.Any of unknown types only, which no control call has.
  (void)google::protobuf::util::MessageToJsonString(message, &json, options);
  return json;
}

absl::Status FromJson(absl::string_view json, google::protobuf::Message& message) {
  const auto status = google::protobuf::util::JsonStringToMessage(std::string(json), &message);
  if (status.ok()) return absl::OkStatus();
  const std::string why(status.message().data(), status.message().size());
  return Error(Reason::kInvalidRequest,
               absl::StrCat("request: not the JSON of ", message.GetTypeName(), ": ", why,
                            "; fields are named as in the .proto files"));
}

}  // namespace planewise
