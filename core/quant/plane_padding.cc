#include "core/quant/plane_padding.h"

#include <algorithm>

#include "core/numeric/float4_e2m1.h"

namespace planewise {

void ZeroScalePadding(const PlaneSpan& plane) {
  const PlaneLayout& layout = plane.layout;
  if (layout.scale_bytes == 0) return;  // no matrix, and perhaps no buffer
  const int64_t scale_bytes = FactsOf(layout.scale_dtype).bits / 8;
  const int64_t row_bytes = layout.scale_columns * scale_bytes;
  const int64_t used_bytes = layout.used_scale_columns * scale_bytes;
  uint8_t* scales = plane.scales;
  for (int64_t row = 0; row < layout.used_scale_rows; ++row, scales += row_bytes) {
    std::fill_n(scales + used_bytes, row_bytes - used_bytes, uint8_t{0});
  }
  std::fill_n(scales, (layout.scale_rows - layout.used_scale_rows) * row_bytes, uint8_t{0});
}

void ZeroPayloadPadding(const PlaneSpan& plane) {
  const PlaneLayout& layout = plane.layout;
  if (layout.payload_dtype != DType::kF4E2M1 || layout.payload_columns % 2 == 0) return;
  for (int64_t row = 0; row < layout.payload_rows; ++row) {
    StorePacked(plane.payload + row * layout.payload_row_bytes(), layout.payload_columns, {});
  }
}

}  // namespace planewise
