#ifndef PLANEWISE_SERVICE_WEIGHTS_NOMINAL_CAST_H_
#define PLANEWISE_SERVICE_WEIGHTS_NOMINAL_CAST_H_
// Rounds a tensor of a checkpoint to the type that the hosted weight stands
// for: the first half of the rounding path `via_model_dtype`.

#include "core/tensor/matrix_view.h"

namespace planewise {

// dst = src, element by element, to nearest even. Both are F32, BF16 or F16 and
// have the same shape.
void CastToNominal(MatrixView src, MutableMatrixView dst);

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_WEIGHTS_NOMINAL_CAST_H_
