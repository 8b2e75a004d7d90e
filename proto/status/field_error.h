#ifndef PLANEWISE_PROTO_STATUS_FIELD_ERROR_H_
#define PLANEWISE_PROTO_STATUS_FIELD_ERROR_H_
// The error of a request field that is missing or malformed.

#include "absl/strings/string_view.h"
#include "core/base/error.h"

namespace planewise {

// INVALID_ARGUMENT / INVALID_REQUEST: 'field FIELD: OBSERVED; set it to REQUIRED'.
// `field` is the path in the request, for example "recipe.format".
Error InvalidField(absl::string_view field, absl::string_view observed, absl::string_view required);

}  // namespace planewise

#endif  // PLANEWISE_PROTO_STATUS_FIELD_ERROR_H_
