#ifndef PLANEWISE_CORE_QUANT_MXFP8_REFERENCE_H_
#define PLANEWISE_CORE_QUANT_MXFP8_REFERENCE_H_
// MXFP8 a second time, for tests: from the closed form of the scale rule and
// from exact arithmetic in double, sharing neither code nor method with the
// quantizers. Slow.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/numeric/dtype.h"
#include "core/numeric/small_float_reference.h"
#include "core/quant/mxfp8_geometry.h"
#include "core/tensor/plane_layout.h"

namespace planewise {

class Mxfp8Reference {
 public:
  explicit Mxfp8Reference(DType element)
      : e5m2_(element == DType::kF8E5M2),
        max_(e5m2_ ? 57344.0 : 448.0),
        codes_(e5m2_ ? SmallFloatReference(2, 15, 0x7B) : SmallFloatReference(3, 7, 0x7E)) {
    for (int b = 0; b <= 254; ++b) scales_.push_back(std::ldexp(1.0, b - 127));
  }

  double max() const { return max_; }

  // The smallest b with amax <= max * 2^(b - 127), but for the one F32 number
  // whose product with the reciprocal rounds down among the subnormals.
  uint32_t ScaleOf(float amax) const {
    if (std::isinf(amax)) return 254;
    if (amax == JustAboveTheSmallestBoundary()) return 0;
    const auto b = std::partition_point(scales_.begin(), scales_.end(),
                                        [&](double scale) { return max_ * scale < amax; });
    return static_cast<uint32_t>(b - scales_.begin());
  }

  float JustAboveTheSmallestBoundary() const {
    return std::nextafterf(static_cast<float>(max_ * 0x1p-127), HUGE_VALF);
  }

  uint32_t CodeOf(float value, uint32_t b) const {
    if (std::isnan(value)) return 0x7F;
    const double scaled = std::fabs(static_cast<double>(value)) / scales_[b];
    return codes_.Nearest(scaled) | (std::signbit(value) ? 0x80 : 0);
  }

  // NaN and infinity codes included; b < 255.
  double ValueOf(uint32_t code, uint32_t b) const {
    const uint32_t magnitude = code & 0x7F;
    double value = NAN;
    if (magnitude <= (e5m2_ ? 0x7Bu : 0x7Eu)) {
      value = codes_.Value(magnitude) * scales_[b];
    } else if (e5m2_ && magnitude == 0x7C) {
      value = HUGE_VAL;
    }
    return (code & 0x80) != 0 ? -value : value;
  }

  struct PlaneBytes {
    std::vector<uint8_t> payload;
    std::vector<uint8_t> scales;  // padded, padding 0
  };

  PlaneBytes Quantize(const std::vector<float>& matrix, const PlaneLayout& layout) const {
    PlaneBytes bytes;
    bytes.payload.resize(static_cast<size_t>(layout.payload_bytes));
    bytes.scales.resize(static_cast<size_t>(layout.scale_bytes));
    for (int64_t i = 0; i < layout.used_scale_rows; ++i) {
      for (int64_t j = 0; j < layout.used_scale_columns; ++j) {
        const BlockElements block = ElementsOfBlock(layout, i, j);
        float amax = 0;
        for (int64_t k = 0; k < block.count; ++k) {
          const float value = matrix[At(block, k)];
          if (!std::isnan(value)) amax = std::fmax(amax, std::fabs(value));
        }
        const uint32_t b = ScaleOf(amax);
        bytes.scales[static_cast<size_t>(i * layout.scale_columns + j)] =
            static_cast<uint8_t>(b);
        for (int64_t k = 0; k < block.count; ++k) {
          bytes.payload[At(block, k)] = static_cast<uint8_t>(CodeOf(matrix[At(block, k)], b));
        }
      }
    }
    return bytes;
  }

 private:
  static size_t At(const BlockElements& block, int64_t k) {
    return static_cast<size_t>(block.first + k * block.stride);
  }

  bool e5m2_;
  double max_;
  SmallFloatReference codes_;
  std::vector<double> scales_;  // 2^(b - 127)
};

}  // namespace planewise

#endif  // PLANEWISE_CORE_QUANT_MXFP8_REFERENCE_H_
