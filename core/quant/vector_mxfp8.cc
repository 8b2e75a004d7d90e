#include "core/quant/vector_mxfp8.h"

#include "core/quant/visit_dtype.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/quant/vector_mxfp8.cc"
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
void QuantizeMxfp8(const MatrixView& src, const QuantizeSpec& spec, RowRange rows,
                   const PlaneSpan* row, const PlaneSpan* column) {
  (void)ScalarQuantizer().Quantize(src, spec, {}, rows, row, column);
}
void DequantizeMxfp8(const PlaneGeometry& /*geometry*/, const ConstPlaneSpan& plane,
                     const MutableMatrixView& dst, RowRange rows) {
  (void)ScalarQuantizer().Dequantize(plane, dst, rows);
}

#else

void QuantizeMxfp8(const MatrixView& src, const QuantizeSpec& spec, RowRange rows,
                   const PlaneSpan* row, const PlaneSpan* column) {
  VisitFloat8(spec.element, [&](auto element_tag) {
    using Element = decltype(element_tag);
    PlaneWriters<Element> writers(spec, row, column);
    VisitHighPrecision(src.dtype, [&](auto source_tag) {
      QuantizePlanes<decltype(source_tag)>(src, rows, Mxfp8Scaling<Element>(), writers);
    });
  });
}

void DequantizeMxfp8(const PlaneGeometry& geometry, const ConstPlaneSpan& plane,
                     const MutableMatrixView& dst, RowRange rows) {
  VisitFloat8(plane.layout.payload_dtype, [&](auto element_tag) {
    VisitHighPrecision(dst.dtype, [&](auto target_tag) {
      DequantizePlane<decltype(target_tag)>(geometry, plane, Mxfp8Scaling<decltype(element_tag)>(),
                                            dst, rows);
    });
  });
}

#endif  // HWY_TARGET == HWY_SCALAR
}  // namespace HWY_NAMESPACE
}  // namespace planewise
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace planewise {

HWY_EXPORT(QuantizeMxfp8);
HWY_EXPORT(DequantizeMxfp8);

void VectorQuantizeMxfp8(const MatrixView& src, const QuantizeSpec& spec, RowRange rows,
                         const PlaneSpan* row, const PlaneSpan* column) {
  HWY_DYNAMIC_DISPATCH(QuantizeMxfp8)(src, spec, rows, row, column);
}

void VectorDequantizeMxfp8(const PlaneGeometry& geometry, const ConstPlaneSpan& plane,
                           const MutableMatrixView& dst, RowRange rows) {
  HWY_DYNAMIC_DISPATCH(DequantizeMxfp8)(geometry, plane, dst, rows);
}

}  // namespace planewise
#endif  // HWY_ONCE
