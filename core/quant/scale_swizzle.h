#ifndef PLANEWISE_CORE_QUANT_SCALE_SWIZZLE_H_
#define PLANEWISE_CORE_QUANT_SCALE_SWIZZLE_H_
// The order in which cuBLASLt reads block scales, and back to the compact order in
// which planes store them. Only 8-bit scales have it: MXFP8's and NVFP4's.
//
// A GEMM operand's scales are a matrix [outer, inner]: outer counts the operand's rows,
// inner the blocks along the contraction. It is padded with 0 to whole tiles of 128
// by 4 scales; tiles lie one after another, row by row, and in a tile four scales
// of one row lie together, those of rows 32 apart side by side.
//
// Swizzled scales are transient: no plane keeps them. Not here: their compact order
// and padding (core/tensor/plane_layout.h).

#include <cstdint>

#include "absl/status/status.h"
#include "core/tensor/plane_layout.h"

namespace planewise {

// Where the scale [outer, inner] lies, of an operand whose inner dimension fills
// `inner_tiles` tiles.
constexpr int64_t SwizzledScaleIndex(int64_t outer, int64_t inner, int64_t inner_tiles) {
  const int64_t tile = outer / 128 * inner_tiles + inner / 4;
  return tile * 512 + outer % 32 * 16 + outer % 128 / 32 * 4 + inner % 4;
}

// Bytes of the swizzled scales of a plane, padding included: those of its compact
// ones. 0 if its scales have no such order.
int64_t SwizzledScaleBytes(const PlaneLayout& layout);

// swizzled [SwizzledScaleBytes] = the scales of a plane whose compact scales
// [scale_rows, scale_columns] are `compact`. Writes every byte, padding as 0 whatever
// the padding of `compact`. INVALID_ARGUMENT if the plane's scales have no such order.
absl::Status SwizzleScales(const PlaneLayout& layout, const uint8_t* compact, uint8_t* swizzled);

// The other way. Writes every byte, padding as 0.
absl::Status UnswizzleScales(const PlaneLayout& layout, const uint8_t* swizzled, uint8_t* compact);

}  // namespace planewise

#endif  // PLANEWISE_CORE_QUANT_SCALE_SWIZZLE_H_
