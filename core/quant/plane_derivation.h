#ifndef PLANEWISE_CORE_QUANT_PLANE_DERIVATION_H_
#define PLANEWISE_CORE_QUANT_PLANE_DERIVATION_H_
// Makes one plane of a weight from the other, with the bytes that quantizing the
// source would give it: possible where both planes have the same blocks, which are
// then squares or the whole matrix. Codes and scales are moved and never computed.
//
// Not here: which planes those are (ColumnDerivableFromRow in
// core/recipe/recipe_check.h), whether a plane is stored or derived for one call.

#include "absl/status/status.h"
#include "core/quant/quantizer.h"
#include "core/recipe/recipe.h"
#include "core/tensor/plane_layout.h"

namespace planewise {

// OK if the plane of `kind` can be made from the other one. Else
// FAILED_PRECONDITION: COLUMNWISE_MISSING for a column plane, NEEDS_MASTER for a row
// plane; the caller names the weight. INVALID_ARGUMENT for format none, which has one
// plane.
absl::Status CheckDerivable(Format format, BlockGeometry geometry, PlaneKind kind);

// Derives a plane from the other plane of the same weight: what rows `rows` of the
// matrix have in it. Parts as in Quantizer::Quantize; together they write every byte
// of payload and scales that `to` stores, padding as 0, and nvfp4's state.
//
// Both layouts are LayoutFor's, or those of a device that stores the transpose of a
// per-tensor plane. What a column plane shares with the row plane must be readable
// through `from`, and is not written through `to`: deriving the column plane of 2-D
// mxfp8 writes scales alone, and a per-tensor one that is not stored nothing. State
// of delayed scaling lies in the row plane and stays with its owner.
//
// Errors as CheckDerivable, and INVALID_ARGUMENT if a layout or the range of rows
// does not fit; then nothing is written.
absl::Status DerivePlane(Format format, BlockGeometry geometry, const ConstPlaneSpan& from,
                         RowRange rows, const PlaneSpan& to);

}  // namespace planewise

#endif  // PLANEWISE_CORE_QUANT_PLANE_DERIVATION_H_
