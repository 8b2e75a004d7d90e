#include "core/quant/test_plane.h"

namespace planewise {

TestPlane::TestPlane(const PlaneLayout& layout, const TestPlane* row)
    : payload_(layout.payload_bytes),
      scales_(layout.scale_bytes, FactsOf(layout.scale_dtype).bits / 8),
      state_(static_cast<size_t>(layout.state_elements()), -777.0f),
      span_{layout, payload_.data(), scales_.data(), state_.data()},
      row_(row) {}

ConstPlaneSpan TestPlane::const_span() const {
  ConstPlaneSpan span = ConstOf(span_);
  if (span.layout.shares_row_payload && row_ != nullptr) span.payload = row_->span_.payload;
  if (span.layout.shares_row_scales && row_ != nullptr) span.scales = row_->span_.scales;
  return span;
}

}  // namespace planewise
