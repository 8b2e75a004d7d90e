#ifndef PLANEWISE_TESTS_TESTING_INTEGER_MODEL_H_
#define PLANEWISE_TESTS_TESTING_INTEGER_MODEL_H_
// Model versions whose weights are small integers in F32, and what forward and
// backward give on them by the definition. All sums are exact, so results of
// FakeLinearCompute compare byte by byte.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/layer/model_version.h"
#include "core/tensor/memory_budget.h"

namespace planewise {

struct IntegerLayer {
  std::string name;
  int64_t out = 0;
  int64_t in = 0;
  bool bias = true;
};

// Version `number` of `model`, trainable, recipe none. Weights depend on
// `number`, so results tell which version made them.
std::shared_ptr<ModelVersion> MakeIntegerVersion(MemoryBudget& budget, const std::string& model,
                                                 uint64_t number,
                                                 const std::vector<IntegerLayer>& layers);

// Small integers, `salt` apart.
std::vector<float> IntegerMatrix(int64_t rows, int64_t columns, uint64_t salt);

// Y = X * W^T + bias.
std::vector<float> ExpectedForward(const HostedLayer& layer, const std::vector<float>& x);
// dX = dY * W, dW = dY^T * X, dbias = column sums of dY.
std::vector<float> ExpectedInputGradient(const HostedLayer& layer, const std::vector<float>& dy);
std::vector<float> ExpectedWeightGradient(const HostedLayer& layer, const std::vector<float>& x,
                                          const std::vector<float>& dy);
std::vector<float> ExpectedBiasGradient(const HostedLayer& layer, const std::vector<float>& dy);

}  // namespace planewise

#endif  // PLANEWISE_TESTS_TESTING_INTEGER_MODEL_H_
