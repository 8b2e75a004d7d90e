#ifndef PLANEWISE_CORE_QUANT_QUANTIZE_REQUEST_H_
#define PLANEWISE_CORE_QUANT_QUANTIZE_REQUEST_H_
// What every Quantizer does before and beside the arithmetic: refuse requests
// whose dtypes, shapes or layouts do not fit together, and write what a plane has
// once and not for each block.

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/quant/plane_geometry.h"
#include "core/quant/quantizer.h"

namespace planewise {

// INVALID_ARGUMENT as Quantizer promises.
absl::Status CheckMeasureAmax(MatrixView src, const QuantizeSpec& spec, RowRange rows);
absl::Status CheckQuantize(MatrixView src, const QuantizeSpec& spec, RowRange rows,
                           const PlaneSpan* row, const PlaneSpan* column);
// How the plane is to be read.
absl::StatusOr<PlaneGeometry> CheckDequantize(const ConstPlaneSpan& plane, MatrixView dst,
                                              RowRange rows);

// The encode scale of a per-tensor plane.
float PerTensorScale(const QuantizeSpec& spec, const TensorAmax& amax);

// If `rows` begins at row 0, writes the plane's padding of scales, nvfp4's state and
// a per-tensor scale; if it ends at the last row, the half byte that ends each
// stored row of an odd number of packed elements.
void WriteOnce(const QuantizeSpec& spec, const TensorAmax& amax, RowRange rows,
               const PlaneSpan& plane);

}  // namespace planewise

#endif  // PLANEWISE_CORE_QUANT_QUANTIZE_REQUEST_H_
