#ifndef PLANEWISE_CORE_QUANT_PLANE_PADDING_H_
#define PLANEWISE_CORE_QUANT_PLANE_PADDING_H_
// Zeroes what a plane's arrays hold beyond scales and codes: every padding byte is 0,
// in memory and on disk.
//
// Not here: how much padding there is (core/tensor/plane_layout.h).

#include "core/quant/quantizer.h"

namespace planewise {

// Scales beyond the used ones.
void ZeroScalePadding(const PlaneSpan& plane);

// The half byte that ends each stored row of an odd number of packed elements.
void ZeroPayloadPadding(const PlaneSpan& plane);

}  // namespace planewise

#endif  // PLANEWISE_CORE_QUANT_PLANE_PADDING_H_
