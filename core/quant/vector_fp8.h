#ifndef PLANEWISE_CORE_QUANT_VECTOR_FP8_H_
#define PLANEWISE_CORE_QUANT_VECTOR_FP8_H_
// The vectorised quantizer's formats with F32 scales: fp8_block, fp8_current and
// fp8_delayed. As vector_mxfp8.h.

#include "core/quant/plane_geometry.h"
#include "core/quant/quantizer.h"

namespace planewise {

// Rows `rows` of the planes given. To be called in a DefaultFloatEnvironment with what
// CheckQuantize accepts, and of a per-tensor format if its scale is a positive number.
void VectorQuantizeFp8(const MatrixView& src, const QuantizeSpec& spec, const TensorAmax& amax,
                       RowRange rows, const PlaneSpan* row, const PlaneSpan* column);

// The same back, of what CheckDequantize says is a plane of such a format.
void VectorDequantizeFp8(const PlaneGeometry& geometry, const ConstPlaneSpan& plane,
                         const MutableMatrixView& dst, RowRange rows);

}  // namespace planewise

#endif  // PLANEWISE_CORE_QUANT_VECTOR_FP8_H_
