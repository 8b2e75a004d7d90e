#include "core/quant/format_conformance.h"

namespace planewise {
namespace {

INSTANTIATE_TEST_SUITE_P(Quantizers, FormatConformance,
                         testing::Values(&ScalarQuantizer(), &VectorQuantizer()), NameOfQuantizer);

}  // namespace
}  // namespace planewise
