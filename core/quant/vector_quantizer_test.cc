#include <memory>
#include <string>
#include <vector>

#include "core/quant/format_conformance.h"
#include "core/quant/quantizer_conformance.h"
#include "hwy/targets.h"

namespace planewise {
namespace {

// VectorQuantizer as a machine with one instruction set only would run it.
class OnTarget final : public Quantizer {
 public:
  explicit OnTarget(int64_t target) : target_(target) {}

  absl::string_view name() const override { return hwy::TargetName(target_); }

  absl::Status MeasureAmax(MatrixView src, const QuantizeSpec& spec, PlaneWishes wishes,
                           RowRange rows, TensorAmax* amax) const override {
    Choose();
    return VectorQuantizer().MeasureAmax(src, spec, wishes, rows, amax);
  }

  absl::Status Quantize(MatrixView src, const QuantizeSpec& spec, const TensorAmax& amax,
                        RowRange rows, const PlaneSpan* row,
                        const PlaneSpan* column) const override {
    Choose();
    return VectorQuantizer().Quantize(src, spec, amax, rows, row, column);
  }

  absl::Status Dequantize(const ConstPlaneSpan& plane, MutableMatrixView dst,
                          RowRange rows) const override {
    Choose();
    return VectorQuantizer().Dequantize(plane, dst, rows);
  }

 private:
  void Choose() const {
    hwy::SetSupportedTargetsForTest(target_);
    hwy::GetChosenTarget().Update(target_);
  }

  int64_t target_;
};

// Every instruction set that is both compiled in and present.
std::vector<const Quantizer*> Targets() {
  static std::vector<std::unique_ptr<OnTarget>> quantizers;
  std::vector<const Quantizer*> tests;
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    quantizers.push_back(std::make_unique<OnTarget>(target));
    tests.push_back(quantizers.back().get());
  }
  return tests;
}

std::vector<QuantizerUnderTest> NamedTargets() {
  std::vector<QuantizerUnderTest> tests;
  for (const Quantizer* quantizer : Targets()) {
    tests.push_back({std::string(quantizer->name()), quantizer});
  }
  return tests;
}

INSTANTIATE_TEST_SUITE_P(Vector, QuantizerConformance, testing::ValuesIn(NamedTargets()),
                         testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Vector, FormatConformance, testing::ValuesIn(Targets()), NameOfQuantizer);

}  // namespace
}  // namespace planewise
