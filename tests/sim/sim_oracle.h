#ifndef PLANEWISE_TESTS_SIM_SIM_ORACLE_H_
#define PLANEWISE_TESTS_SIM_SIM_ORACLE_H_
// What an operation must give, byte for byte: the layer's own code called
// directly, with no session, no transport and no history.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/gemm/cpu_gemm.h"
#include "core/layer/linear.h"
#include "core/layer/model_version.h"
#include "core/tensor/memory_budget.h"

namespace planewise {

struct OracleCall {
  const HostedLayer* layer = nullptr;
  LinearMode mode;
  DType activation = DType::kBF16;
  int64_t tokens = 0;
};

// One thread.
class SimOracle {
 public:
  SimOracle();

  std::string Forward(const OracleCall& call, const std::string& x);
  // One string for each gradient that is wanted, in the order input, weight, bias.
  std::vector<std::string> Backward(const OracleCall& call, LinearGradients wanted,
                                    const std::string& x, const std::string& dy);

 private:
  HostBuffer BufferOf(const std::string& bytes);

  std::shared_ptr<MemoryBudget> budget_ = MemoryBudget::Create(int64_t{1} << 30);
  std::unique_ptr<CpuGemm> gemm_;
  ComputeContext context_;
};

}  // namespace planewise

#endif  // PLANEWISE_TESTS_SIM_SIM_ORACLE_H_
