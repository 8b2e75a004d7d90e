#include "core/quant/vector_fp8.h"

#include "core/quant/fp8_scale.h"
#include "core/quant/quantize_request.h"
#include "core/quant/visit_dtype.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/quant/vector_fp8.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, which includes this file again for each target.
#include "core/quant/vector_dequantize-inl.h"
#include "core/quant/vector_quantize-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace planewise {
namespace HWY_NAMESPACE {
#if HWY_TARGET == HWY_SCALAR

// A machine without vectors.
void QuantizeFp8(const MatrixView& src, const QuantizeSpec& spec, const TensorAmax& amax,
                 RowRange rows, const PlaneSpan* row, const PlaneSpan* column) {
  (void)ScalarQuantizer().Quantize(src, spec, amax, rows, row, column);
}
void DequantizeFp8(const PlaneGeometry& /*geometry*/, const ConstPlaneSpan& plane,
                   const MutableMatrixView& dst, RowRange rows) {
  (void)ScalarQuantizer().Dequantize(plane, dst, rows);
}

#else

void QuantizeFp8(const MatrixView& src, const QuantizeSpec& spec, const TensorAmax& amax,
                 RowRange rows, const PlaneSpan* row, const PlaneSpan* column) {
  VisitFloat8(spec.element, [&](auto element_tag) {
    using Element = decltype(element_tag);
    PlaneWriters<Element> writers(spec, row, column);
    VisitHighPrecision(src.dtype, [&](auto source_tag) {
      using Source = decltype(source_tag);
      if (IsPerTensor(spec.format)) {
        const PerTensorScaling<Element> scaling(PerTensorScale(spec, amax));
        return QuantizePlanes<Source>(src, rows, scaling, writers);
      }
      const Fp8BlockScaling<Element> scaling({Element::kMax, spec.power_of_two_scales,
                                              spec.amax_epsilon, LargestBlockScale(src.dtype)});
      QuantizePlanes<Source>(src, rows, scaling, writers);
    });
  });
}

void DequantizeFp8(const PlaneGeometry& geometry, const ConstPlaneSpan& plane,
                   const MutableMatrixView& dst, RowRange rows) {
  VisitFloat8(plane.layout.payload_dtype, [&](auto element_tag) {
    // Which rule made the scales does not matter.
    const Fp8BlockScaling<decltype(element_tag)> scaling({});
    VisitHighPrecision(dst.dtype, [&](auto target_tag) {
      DequantizePlane<decltype(target_tag)>(geometry, plane, scaling, dst, rows);
    });
  });
}

#endif  // HWY_TARGET == HWY_SCALAR
}  // namespace HWY_NAMESPACE
}  // namespace planewise
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace planewise {

HWY_EXPORT(QuantizeFp8);
HWY_EXPORT(DequantizeFp8);

void VectorQuantizeFp8(const MatrixView& src, const QuantizeSpec& spec, const TensorAmax& amax,
                       RowRange rows, const PlaneSpan* row, const PlaneSpan* column) {
  HWY_DYNAMIC_DISPATCH(QuantizeFp8)(src, spec, amax, rows, row, column);
}

void VectorDequantizeFp8(const PlaneGeometry& geometry, const ConstPlaneSpan& plane,
                         const MutableMatrixView& dst, RowRange rows) {
  HWY_DYNAMIC_DISPATCH(DequantizeFp8)(geometry, plane, dst, rows);
}

}  // namespace planewise
#endif  // HWY_ONCE
