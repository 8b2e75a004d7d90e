#include "core/tensor/plane_set.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/base/error.h"

namespace planewise {

absl::string_view Name(PlanePolicy policy) {
  switch (policy) {
    case PlanePolicy::kAuto: return "AUTO";
    case PlanePolicy::kBoth: return "BOTH";
    case PlanePolicy::kRowOnly: return "ROW_ONLY";
  }
  return "invalid";
}

absl::StatusOr<PlanePolicy> ParsePlanePolicy(absl::string_view name) {
  const std::string upper = absl::AsciiStrToUpper(name);
  for (const PlanePolicy policy : {PlanePolicy::kAuto, PlanePolicy::kBoth, PlanePolicy::kRowOnly}) {
    if (upper == Name(policy)) return policy;
  }
  return Error(
      Reason::kInvalidRequest,
      absl::StrCat("plane policy \"", name, "\" is not known; valid: AUTO, BOTH, ROW_ONLY"));
}

}  // namespace planewise
