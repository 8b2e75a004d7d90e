#ifndef PLANEWISE_CORE_QUANT_PLANE_REFERENCE_H_
#define PLANEWISE_CORE_QUANT_PLANE_REFERENCE_H_
// Every format a second time, for tests: planes straight from the rules that
// core/numeric/NUMERICS.md states, one element after another. A column plane is the
// row plane of the transposed matrix, stored otherwise; products are exact in double
// and rounded once; quotients and codes are searched for (small_float_reference.h,
// fp8_scale_reference.h). Shares neither code nor method with the quantizers. Slow.
//
// Not here: what roles make of a recipe (quantize_spec.h), ranges of rows.

#include <cstdint>
#include <memory>
#include <vector>

#include "core/numeric/dtype.h"
#include "core/quant/quantize_spec.h"
#include "core/tensor/plane_layout.h"

namespace planewise {

// [rows, columns], row-major: what the elements of a matrix in `source` stand for.
struct ReferenceMatrix {
  DType source = DType::kF32;
  int64_t rows = 0;
  int64_t columns = 0;
  std::vector<float> values;
};

// A plane that shares nothing: the column plane of 2-D mxfp8 has the codes, too, and
// a per-tensor one the transposed codes and the scale. Scales are padded with 0.
struct ReferencePlane {
  std::vector<uint8_t> payload;
  std::vector<uint8_t> scales;
  std::vector<float> state;  // nvfp4: the largest magnitude
};

class PlaneReference {
 public:
  explicit PlaneReference(const QuantizeSpec& spec);
  ~PlaneReference();

  // The largest magnitude of what the plane is made of; NaN does not count.
  float Amax(const ReferenceMatrix& matrix, PlaneKind kind) const;

  ReferencePlane Quantize(const ReferenceMatrix& matrix, PlaneKind kind) const;

  // [rows, columns] F32 numbers that the plane's codes stand for. Planes need not be
  // ones that Quantize makes.
  std::vector<float> Dequantize(const ReferencePlane& plane, PlaneKind kind, int64_t rows,
                                int64_t columns) const;

  // How each element of a row plane is made into a code, to build inputs that lie on
  // edges: the largest magnitude of its block, and what it is multiplied by.
  struct Scaling {
    float amax = 0;
    float multiplier = 0;
  };
  std::vector<Scaling> RowScalings(const ReferenceMatrix& matrix) const;

  // What the quotient of an element and its scale is rounded at: between the codes
  // of magnitude `code` and `code` + 1, which is at most CodeMax().
  double Midpoint(uint32_t code) const;
  uint32_t CodeMax() const;

  // The stored scale of a block, as bits, in a plane with these magnitudes.
  uint32_t ScaleBits(float block_amax, float tensor_amax, DType source) const;

 private:
  class Rules;
  std::unique_ptr<const Rules> rules_;
};

// `value` as the bits of an element of a high-precision type; one NaN for all.
uint32_t ReferenceBits(float value, DType dtype);

}  // namespace planewise

#endif  // PLANEWISE_CORE_QUANT_PLANE_REFERENCE_H_
