#ifndef PLANEWISE_CORE_QUANT_WEIGHT_SPEC_H_
#define PLANEWISE_CORE_QUANT_WEIGHT_SPEC_H_
// How a weight is quantized whose values have just come: from a checkpoint, or
// from the high-precision plane that was hosted until now.
//
// Not here: how its next values are (writeback), once a delayed scale has a
// history.

#include "absl/status/statusor.h"
#include "core/quant/quantize_spec.h"
#include "core/quant/quantizer.h"
#include "core/recipe/recipe.h"
#include "core/tensor/matrix_view.h"

namespace planewise {

// QuantizeSpecFor(recipe, kWeight). Under fp8_delayed the scale is the one that an
// update gives whose history is the largest magnitude of `weight` alone, so that
// the first codes use the whole range of their type; with the 1 that an empty
// history stands for, ordinary weights would become subnormal codes. Reads
// `weight` once for that. Errors as MeasureAmax.
absl::StatusOr<QuantizeSpec> NewWeightSpec(const Quantizer& quantizer, const Recipe& recipe,
                                           MatrixView weight);

}  // namespace planewise

#endif  // PLANEWISE_CORE_QUANT_WEIGHT_SPEC_H_
