#include "core/quant/quantizer_conformance.h"

namespace planewise {
namespace {

INSTANTIATE_TEST_SUITE_P(Scalar, QuantizerConformance,
                         testing::Values(QuantizerUnderTest{"scalar", &ScalarQuantizer()}),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace planewise
