#ifndef PLANEWISE_CORE_QUANT_VECTOR_MXFP8_H_
#define PLANEWISE_CORE_QUANT_VECTOR_MXFP8_H_
// The vectorised quantizer's MXFP8: the normative quantizer's bytes, a vector at a
// time. Compiled once for each instruction set; the best that the machine has is
// chosen at run time.
//
// Not here: checking requests, and what is written once (vector_quantizer.cc).

#include "core/quant/plane_geometry.h"
#include "core/quant/quantizer.h"

namespace planewise {

// Rows `rows` of the planes given; spec.format is mxfp8. To be called in a
// DefaultFloatEnvironment with what CheckQuantize accepts.
void VectorQuantizeMxfp8(const MatrixView& src, const QuantizeSpec& spec, RowRange rows,
                         const PlaneSpan* row, const PlaneSpan* column);

// The same back, of what CheckDequantize says is an mxfp8 plane.
void VectorDequantizeMxfp8(const PlaneGeometry& geometry, const ConstPlaneSpan& plane,
                           const MutableMatrixView& dst, RowRange rows);

}  // namespace planewise

#endif  // PLANEWISE_CORE_QUANT_VECTOR_MXFP8_H_
