// The normative quantizer's bytes, faster: each format lies in a file of its own
// (vector_mxfp8.h). What none of them has is left to the normative code.

#include "core/base/status_macros.h"
#include "core/numeric/default_float_environment.h"
#include "core/quant/plane_geometry.h"
#include "core/quant/quantize_request.h"
#include "core/quant/quantizer.h"
#include "core/quant/vector_mxfp8.h"

namespace planewise {
namespace {

class Vector final : public Quantizer {
 public:
  absl::string_view name() const override { return "vector"; }

  absl::Status MeasureAmax(MatrixView src, const QuantizeSpec& spec, PlaneWishes wishes,
                           RowRange rows, TensorAmax* amax) const override {
    return ScalarQuantizer().MeasureAmax(src, spec, wishes, rows, amax);
  }

  absl::Status Quantize(MatrixView src, const QuantizeSpec& spec, const TensorAmax& amax,
                        RowRange rows, const PlaneSpan* row,
                        const PlaneSpan* column) const override {
    if (spec.format != Format::kMxfp8) {
      return ScalarQuantizer().Quantize(src, spec, amax, rows, row, column);
    }
    PW_RETURN_IF_ERROR(CheckQuantize(src, spec, rows, row, column));
    const DefaultFloatEnvironment environment;
    VectorQuantizeMxfp8(src, spec, rows, row, column);
    for (const PlaneSpan* plane : {row, column}) {
      if (plane != nullptr) WriteOnce(spec, amax, rows, *plane);
    }
    return absl::OkStatus();
  }

  absl::Status Dequantize(const ConstPlaneSpan& plane, MutableMatrixView dst,
                          RowRange rows) const override {
    PW_ASSIGN_OR_RETURN(const PlaneGeometry geometry, CheckDequantize(plane, dst, rows));
    if (geometry.format != Format::kMxfp8) return ScalarQuantizer().Dequantize(plane, dst, rows);
    const DefaultFloatEnvironment environment;
    VectorDequantizeMxfp8(geometry, plane, dst, rows);
    return absl::OkStatus();
  }
};

}  // namespace

const Quantizer& VectorQuantizer() {
  static const Vector quantizer;
  return quantizer;
}

}  // namespace planewise
