#ifndef PLANEWISE_CORE_QUANT_FORMAT_CONFORMANCE_H_
#define PLANEWISE_CORE_QUANT_FORMAT_CONFORMANCE_H_
// Holds a Quantizer to plane_reference.h, byte for byte: every format, every field of
// its recipe, weights, activations and gradients, both planes, and back. Runs for
// each implementation that a test instantiates it with:
//
//   INSTANTIATE_TEST_SUITE_P(Scalar, FormatConformance, testing::Values(&ScalarQuantizer()),
//                            NameOfQuantizer);
//
// Not here: what is beside the arithmetic (errors, guards, floating-point modes:
// quantizer_conformance.h).

#include <string>

#include "core/quant/quantizer.h"
#include "gtest/gtest.h"

namespace planewise {

class FormatConformance : public testing::TestWithParam<const Quantizer*> {
 protected:
  const Quantizer& quantizer() const { return *GetParam(); }
};

inline std::string NameOfQuantizer(const testing::TestParamInfo<const Quantizer*>& test) {
  return std::string(test.param->name());
}

}  // namespace planewise

#endif  // PLANEWISE_CORE_QUANT_FORMAT_CONFORMANCE_H_
