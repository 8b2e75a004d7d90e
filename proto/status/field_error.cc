#include "proto/status/field_error.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace planewise {

Error InvalidField(absl::string_view field, absl::string_view observed,
                   absl::string_view required) {
  const std::string problem = absl::StrCat(observed, "; set it to ", required);
  return Error(Reason::kInvalidRequest, absl::StrCat("field ", field, ": ", problem))
      .With("field", field)
      .WithViolation({Reason::kInvalidRequest, std::string(field), problem});
}

}  // namespace planewise
