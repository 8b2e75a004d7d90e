#ifndef PLANEWISE_CORE_CHECKPOINT_SCALE_CHECK_H_
#define PLANEWISE_CORE_CHECKPOINT_SCALE_CHECK_H_
// What can be wrong with the scales of a plane whose bytes are those that were
// written.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/quant/quantizer.h"
#include "core/tensor/primary_weight.h"

namespace planewise {

struct ScaleFault {
  int64_t byte_offset = 0;  // of the first scale at fault
  std::string text;

  bool operator==(const ScaleFault&) const = default;
};

// Of a plane with E8M0 scales: scales of 255, which is no number; padding that
// is not 0; exponents over non-zero blocks other than `recorded`.
std::vector<ScaleFault> ScaleFaultsOf(const ConstPlaneSpan& plane,
                                      const std::optional<ExponentRange>& recorded);

}  // namespace planewise

#endif  // PLANEWISE_CORE_CHECKPOINT_SCALE_CHECK_H_
