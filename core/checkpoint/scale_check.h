#ifndef PLANEWISE_CORE_CHECKPOINT_SCALE_CHECK_H_
#define PLANEWISE_CORE_CHECKPOINT_SCALE_CHECK_H_
// What can be wrong with the scales of a plane whose bytes are those that were
// written.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/quant/quantizer.h"
#include "core/recipe/recipe.h"
#include "core/tensor/primary_weight.h"

namespace planewise {

struct ScaleFault {
  int64_t byte_offset = 0;  // of the first value at fault
  std::string text;

  bool operator==(const ScaleFault&) const = default;
};

// Scales that are NaN or negative, or in F32 not above 0 and finite; padding that is
// not 0; of E8M0 scales, exponents over non-zero blocks other than `recorded`.
std::vector<ScaleFault> ScaleFaultsOf(const ConstPlaneSpan& plane,
                                      const std::optional<ExponentRange>& recorded);

// Of a plane's F32 state: amaxes that are NaN or negative (infinite they may be), and
// a delayed scale that is not above 0 and finite.
std::optional<ScaleFault> StateFaultOf(Format format, absl::Span<const std::byte> state);

}  // namespace planewise

#endif  // PLANEWISE_CORE_CHECKPOINT_SCALE_CHECK_H_
