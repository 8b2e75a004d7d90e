// The normative quantizer: every other one must give its bytes. One block after
// another, nothing clever.

#include "core/base/status_macros.h"
#include "core/numeric/default_float_environment.h"
#include "core/quant/mxfp8_block.h"
#include "core/quant/mxfp8_geometry.h"
#include "core/quant/quantize_request.h"
#include "core/quant/quantizer.h"
#include "core/quant/visit_dtype.h"

namespace planewise {
namespace {

// Calls function(elements, scale) for every block: its elements in matrix and
// payload, and the index of its scale.
template <typename Function>
void ForEachBlock(const PlaneLayout& layout, Function function) {
  for (int64_t i = 0; i < layout.used_scale_rows; ++i) {
    for (int64_t j = 0; j < layout.used_scale_columns; ++j) {
      function(ElementsOfBlock(layout, i, j), i * layout.scale_columns + j);
    }
  }
}

template <typename Element, typename Source>
void QuantizePlane(const Source* source, const PlaneSpan& plane) {
  Element* codes = reinterpret_cast<Element*>(plane.payload);
  ForEachBlock(plane.layout, [&](BlockElements block, int64_t scale) {
    plane.scales[scale] = QuantizeMxfp8Block(source + block.first, block.count, block.stride,
                                             codes + block.first)
                              .bits;
  });
  ZeroScalePadding(plane);
}

template <typename Element, typename Target>
void DequantizePlane(const ConstPlaneSpan& plane, Target* target) {
  const Element* codes = reinterpret_cast<const Element*>(plane.payload);
  ForEachBlock(plane.layout, [&](BlockElements block, int64_t scale) {
    DequantizeMxfp8Block(codes + block.first, ScaleE8M0{plane.scales[scale]}, block.count,
                         block.stride, target + block.first);
  });
}

class Scalar final : public Quantizer {
 public:
  absl::string_view name() const override { return "scalar"; }

  absl::Status QuantizeMxfp8(MatrixView src, DType element, const PlaneSpan* row,
                             const PlaneSpan* column) const override {
    PW_RETURN_IF_ERROR(CheckQuantizeMxfp8(src, element, row, column));
    const DefaultFloatEnvironment environment;
    VisitHighPrecision(src.dtype, [&](auto source_tag) {
      VisitFloat8(element, [&](auto element_tag) {
        const auto* source = static_cast<const decltype(source_tag)*>(src.data);
        for (const PlaneSpan* plane : {row, column}) {
          if (plane != nullptr) QuantizePlane<decltype(element_tag)>(source, *plane);
        }
      });
    });
    return absl::OkStatus();
  }

  absl::Status DequantizeMxfp8(ConstPlaneSpan plane, DType element,
                               MutableMatrixView dst) const override {
    PW_RETURN_IF_ERROR(CheckDequantizeMxfp8(plane, element, dst));
    const DefaultFloatEnvironment environment;
    VisitHighPrecision(dst.dtype, [&](auto target_tag) {
      VisitFloat8(element, [&](auto element_tag) {
        auto* target = static_cast<decltype(target_tag)*>(dst.data);
        DequantizePlane<decltype(element_tag)>(plane, target);
      });
    });
    return absl::OkStatus();
  }
};

}  // namespace

const Quantizer& ScalarQuantizer() {
  static const Scalar quantizer;
  return quantizer;
}

}  // namespace planewise
