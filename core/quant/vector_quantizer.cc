// The normative quantizer's bytes, faster: each format lies in a file of its own
// (vector_mxfp8.h, vector_fp8.h). Requests are checked here, and what is written once
// is written here.

#include <cmath>

#include "core/base/status_macros.h"
#include "core/numeric/default_float_environment.h"
#include "core/quant/plane_geometry.h"
#include "core/quant/quantize_request.h"
#include "core/quant/quantizer.h"
#include "core/quant/vector_fp8.h"
#include "core/quant/vector_mxfp8.h"

namespace planewise {
namespace {

// Vectors take numbers that some rule gave. What becomes of others (a delayed scale is
// the caller's) is left to the normative code.
bool TakesVectors(const QuantizeSpec& spec, const TensorAmax& amax) {
  if (spec.format == Format::kNvfp4) return false;
  if (!IsPerTensor(spec.format)) return true;
  const float scale = PerTensorScale(spec, amax);
  return scale > 0 && std::isfinite(scale);
}

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
    if (!TakesVectors(spec, amax)) {
      return ScalarQuantizer().Quantize(src, spec, amax, rows, row, column);
    }
    PW_RETURN_IF_ERROR(CheckQuantize(src, spec, rows, row, column));
    const DefaultFloatEnvironment environment;
    if (spec.format == Format::kMxfp8) {
      VectorQuantizeMxfp8(src, spec, rows, row, column);
    } else {
      VectorQuantizeFp8(src, spec, amax, rows, row, column);
    }
    for (const PlaneSpan* plane : {row, column}) {
      if (plane != nullptr) WriteOnce(spec, amax, rows, *plane);
    }
    return absl::OkStatus();
  }

  absl::Status Dequantize(const ConstPlaneSpan& plane, MutableMatrixView dst,
                          RowRange rows) const override {
    PW_ASSIGN_OR_RETURN(const PlaneGeometry geometry, CheckDequantize(plane, dst, rows));
    if (geometry.format == Format::kNvfp4) return ScalarQuantizer().Dequantize(plane, dst, rows);
    const DefaultFloatEnvironment environment;
    if (geometry.format == Format::kMxfp8) {
      VectorDequantizeMxfp8(geometry, plane, dst, rows);
    } else {
      VectorDequantizeFp8(geometry, plane, dst, rows);
    }
    return absl::OkStatus();
  }
};

}  // namespace

const Quantizer& VectorQuantizer() {
  static const Vector quantizer;
  return quantizer;
}

}  // namespace planewise
