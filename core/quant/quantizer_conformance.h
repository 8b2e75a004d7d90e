#ifndef PLANEWISE_CORE_QUANT_QUANTIZER_CONFORMANCE_H_
#define PLANEWISE_CORE_QUANT_QUANTIZER_CONFORMANCE_H_
// What every Quantizer must do, byte for byte, against mxfp8_reference.h. The
// suite runs once for each implementation that a test instantiates it with:
//
//   INSTANTIATE_TEST_SUITE_P(Scalar, QuantizerConformance,
//                            testing::Values(QuantizerUnderTest{"scalar", &ScalarQuantizer()}),
//                            testing::PrintToStringParamName());

#include <ostream>
#include <string>

#include "core/quant/quantizer.h"
#include "gtest/gtest.h"

namespace planewise {

struct QuantizerUnderTest {
  std::string name;
  const Quantizer* quantizer;
};
inline std::ostream& operator<<(std::ostream& out, const QuantizerUnderTest& test) {
  return out << test.name;
}

class QuantizerConformance : public testing::TestWithParam<QuantizerUnderTest> {
 protected:
  const Quantizer& quantizer() const { return *GetParam().quantizer; }

  // Whole matrices.
  absl::Status QuantizeMxfp8(MatrixView src, DType element, const PlaneSpan* row,
                             const PlaneSpan* column) const {
    return quantizer().Quantize(src, {.format = Format::kMxfp8, .element = element}, {},
                                AllRows(src), row, column);
  }
  absl::Status Dequantize(const ConstPlaneSpan& plane, MutableMatrixView dst) const {
    return quantizer().Dequantize(plane, dst, AllRows(dst));
  }
};

}  // namespace planewise

#endif  // PLANEWISE_CORE_QUANT_QUANTIZER_CONFORMANCE_H_
