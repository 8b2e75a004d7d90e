#include "service/compute/non_finite_policy.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/quant/quantizer.h"

namespace planewise {

absl::Status CheckFinite(NonFinitePolicy policy, absl::string_view name, MatrixView tensor) {
  if (policy == NonFinitePolicy::kFormat) return absl::OkStatus();
  const std::optional<int64_t> index = FirstNonFinite(tensor);
  if (!index.has_value()) return absl::OkStatus();
  return Error(Reason::kNonFiniteInTensor,
               absl::StrCat(name, ": NaN or infinity at index ", *index, " (row ",
                            *index / tensor.columns, ", column ", *index % tensor.columns,
                            ") of [", tensor.rows, ", ", tensor.columns,
                            "]; correct it, or choose the non-finite policy `format`"))
      .With("tensor", name)
      .With("firstIndex", *index);
}

}  // namespace planewise
