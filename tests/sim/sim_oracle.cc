#include "tests/sim/sim_oracle.h"

#include <cstring>
#include <utility>

#include "core/numeric/dtype.h"
#include "core/quant/quantizer.h"

namespace planewise {

SimOracle::SimOracle() : gemm_(*CpuGemm::Create(/*threads=*/1, *budget_)) {
  context_ = {gemm_.get(), &VectorQuantizer(), budget_.get()};
}

HostBuffer SimOracle::BufferOf(const std::string& bytes) {
  HostBuffer buffer = *HostBuffer::Allocate(*budget_, MemoryUse::kTransport,
                                            static_cast<int64_t>(bytes.size()), "oracle");
  if (!bytes.empty()) std::memcpy(buffer.data(), bytes.data(), bytes.size());
  return buffer;
}

std::string SimOracle::Forward(const OracleCall& call, const std::string& x) {
  const int64_t out = call.layer->weight->shape.out;
  const LinearForwardPlan plan =
      *PlanLinearForward("oracle", *call.layer->weight, call.mode, call.tokens, call.activation);
  std::string y(static_cast<size_t>(*SizeBytes(call.activation, call.tokens * out)), '\0');
  *RunLinearForward(context_, plan, *call.layer, BufferOf(x),
                    {y.data(), call.activation, call.tokens, out});
  return y;
}

std::vector<std::string> SimOracle::Backward(const OracleCall& call, LinearGradients wanted,
                                             const std::string& x, const std::string& dy) {
  const auto [out, in] = call.layer->weight->shape;
  const LinearForwardPlan plan =
      *PlanLinearForward("oracle", *call.layer->weight, call.mode, call.tokens, call.activation);
  const auto saved = *SaveOperand(context_, plan, *call.layer, BufferOf(x));
  const LinearBackwardPlan backward = *PlanLinearBackward("oracle", *saved, wanted);
  std::string dx(static_cast<size_t>(*SizeBytes(call.activation, call.tokens * in)), '\0');
  std::string dw(static_cast<size_t>(out * in) * sizeof(float), '\0');
  std::string db(static_cast<size_t>(out) * sizeof(float), '\0');
  *RunLinearBackward(context_, backward, *saved, {dy.data(), call.activation, call.tokens, out},
                     {dx.data(), call.activation, call.tokens, in},
                     {dw.data(), DType::kF32, out, in}, {db.data(), DType::kF32, 1, out});
  std::vector<std::string> gradients;
  if (wanted.input) gradients.push_back(std::move(dx));
  if (wanted.weight) gradients.push_back(std::move(dw));
  if (wanted.bias) gradients.push_back(std::move(db));
  return gradients;
}

}  // namespace planewise
