#ifndef PLANEWISE_CORE_QUANT_QUANTIZE_REQUEST_H_
#define PLANEWISE_CORE_QUANT_QUANTIZE_REQUEST_H_
// What every Quantizer does before and beside the arithmetic: refuse requests
// whose dtypes, shapes or layouts do not fit together, and zero the padding.

#include "absl/status/status.h"
#include "core/quant/quantizer.h"

namespace planewise {

// INVALID_ARGUMENT as Quantizer::QuantizeMxfp8 and DequantizeMxfp8 promise.
absl::Status CheckQuantizeMxfp8(MatrixView src, DType element, const PlaneSpan* row,
                                const PlaneSpan* column);
absl::Status CheckDequantizeMxfp8(const ConstPlaneSpan& plane, DType element, MatrixView dst);

// Writes 0 to every scale byte that belongs to no block.
void ZeroScalePadding(const PlaneSpan& plane);

}  // namespace planewise

#endif  // PLANEWISE_CORE_QUANT_QUANTIZE_REQUEST_H_
