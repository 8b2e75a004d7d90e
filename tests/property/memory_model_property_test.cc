// For random models: the planned bytes are the bytes that the allocator counts
// when the planes are really made, and both are what Transformer Engine's
// formulas give. The formulas are written out here once more, so that a size
// function that is wrong in the same way for plan and allocation is noticed.

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/quant/quantizer.h"
#include "core/tensor/host_buffer.h"
#include "core/tensor/memory_budget.h"
#include "gtest/gtest.h"
#include "planner/memory_model.h"
#include "planner/tensor_inventory.h"
#include "tests/testing/seed.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

constexpr int kModels = 60;

int64_t Up(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

// Bytes of an MXFP8 plane of an [n, k] matrix.
int64_t RowFormula(int64_t n, int64_t k) { return n * k + Up(n, 128) * Up((k + 31) / 32, 4); }
int64_t ColumnFormula(int64_t n, int64_t k) { return n * k + Up((n + 31) / 32, 4) * Up(k, 128); }

class RandomModel {
 public:
  explicit RandomModel(uint64_t seed) : bits_(seed) {
    inventory_.architecture = "random";
    const int64_t layers = 1 + Below(4);
    for (int64_t i = 0; i < layers; ++i) AddLayer("layer." + std::to_string(i));
    options_.recipe = DefaultRecipe(Below(4) == 0 ? Format::kNone : Format::kMxfp8);
    if (options_.recipe.quantized()) {
      options_.recipe.backward_override = static_cast<BackwardOverride>(Below(3));
    }
    options_.policy = static_cast<PlanePolicy>(Below(3));
    options_.backward_enabled = Below(4) != 0;
    options_.trainable = Below(2) != 0;
    options_.nominal = AnyDType();
    options_.activation = AnyDType();
    options_.load.sessions = 1;
    options_.load.tokens = Below(200);
  }

  const TensorInventory& inventory() const { return inventory_; }
  const PlanOptions& options() const { return options_; }

 private:
  int64_t Below(int64_t bound) { return static_cast<int64_t>(bits_() % bound); }

  DType AnyDType() {
    const DType dtypes[] = {DType::kF32, DType::kF16, DType::kBF16};
    return dtypes[Below(3)];
  }

  void AddLayer(const std::string& layer) {
    InventoryTensor weight;
    weight.name = layer + ".weight";
    weight.layer = layer;
    weight.shape = {32 * Below(12), 32 * Below(12)};
    weight.hosted = true;
    weight.dtype = AnyDType();
    inventory_.tensors.push_back(weight);
    if (Below(2) == 0) return;
    InventoryTensor bias = weight;
    bias.name = layer + ".bias";
    bias.shape = {weight.shape[0]};
    bias.role = TensorRole::kLinearBias;
    inventory_.tensors.push_back(bias);
  }

  std::mt19937_64 bits_;
  TensorInventory inventory_;
  PlanOptions options_;
};

// What a model really allocates, kept until the test has counted it.
class Allocations {
 public:
  int64_t used(MemoryUse use) const { return budget_->used_bytes(use); }

  void Matrix(MemoryUse use, int64_t rows, int64_t columns, DType dtype) {
    buffers_.push_back(*HostBuffer::Allocate(*budget_, use, *SizeBytes(dtype, rows * columns),
                                             "matrix"));
  }

  void Planes(MemoryUse use, int64_t rows, int64_t columns, DType dtype, PlaneWishes wishes) {
    const std::vector<std::byte> zeros(*SizeBytes(dtype, rows * columns));
    const MatrixView src{zeros.data(), dtype, rows, columns};
    planes_.push_back(*QuantizeToPlanes(ScalarQuantizer(), *budget_, use, src,
                                        {.format = Format::kMxfp8}, wishes, WeightVersion(1),
                                        "planes"));
  }

 private:
  std::shared_ptr<MemoryBudget> budget_ = MemoryBudget::Create(int64_t{1} << 32);
  std::vector<HostBuffer> buffers_;
  std::vector<QuantizedPlanes> planes_;
};

// Makes the planes of one layer. Returns what the formulas say of its weight.
int64_t MakeWeight(const LayerPlan& layer, const PlanOptions& options, Allocations& made) {
  const int64_t out = layer.shape.out;
  const int64_t in = layer.shape.in;
  if (layer.bias.has_value()) made.Matrix(MemoryUse::kWeights, 1, out, options.nominal);
  if (!options.recipe.quantized()) {
    made.Matrix(MemoryUse::kWeights, out, in, options.nominal);
    return out * in * FactsOf(options.nominal).bits / 8;
  }
  made.Planes(MemoryUse::kWeights, out, in, options.nominal,
              {.row = true, .column = layer.decision.column});
  return RowFormula(out, in) + (layer.decision.column ? ColumnFormula(out, in) : 0);
}

// Makes what a session keeps of X. Returns what the formulas say.
int64_t MakeSavedOperand(int64_t in, const PlanOptions& options, Allocations& made) {
  const int64_t tokens = options.load.tokens;
  if (!options.trainable || !options.backward_enabled) return 0;
  const BackwardOverride mode = options.recipe.backward_override;
  if (!options.recipe.quantized() || mode == BackwardOverride::kHighPrecision) {
    made.Matrix(MemoryUse::kSavedOperands, tokens, in, options.activation);
    return tokens * in * FactsOf(options.activation).bits / 8;
  }
  const bool row = mode == BackwardOverride::kDequantized;
  made.Planes(MemoryUse::kSavedOperands, tokens, in, options.activation,
              {.row = row, .column = !row});
  return row ? RowFormula(tokens, in) : ColumnFormula(tokens, in);
}

TEST(MemoryModelPropertyTest, PlannedBytesAreAllocatedBytes) {
  std::mt19937_64 seeds(TestSeed());
  for (int i = 0; i < kModels; ++i) {
    const RandomModel model(seeds());
    const PlanOptions& options = model.options();
    SCOPED_TRACE(testing::Message() << "model " << i << ": " << options.recipe << ", "
                                    << Name(options.policy) << ", " << options.load.tokens
                                    << " tokens");
    PW_ASSERT_OK_AND_ASSIGN(const ModelPlan plan, PlanModel(model.inventory(), options));
    Allocations made;
    for (const LayerPlan& layer : plan.layers) {
      SCOPED_TRACE(testing::Message() << layer.name << " " << layer.shape);
      const int64_t weights_before = made.used(MemoryUse::kWeights);
      const int64_t saved_before = made.used(MemoryUse::kSavedOperands);
      EXPECT_EQ(layer.weight_bytes(), MakeWeight(layer, options, made));
      EXPECT_EQ(layer.persistent_bytes(), made.used(MemoryUse::kWeights) - weights_before);
      const int64_t saved = layer.saved.Of(options.recipe.backward_override);
      EXPECT_EQ(saved, MakeSavedOperand(layer.shape.in, options, made));
      EXPECT_EQ(saved, made.used(MemoryUse::kSavedOperands) - saved_before);
    }
    EXPECT_EQ(plan.totals.persistent_bytes, made.used(MemoryUse::kWeights));
    EXPECT_EQ(plan.totals.saved_operand_bytes, made.used(MemoryUse::kSavedOperands));
    if (HasFailure()) return;  // one model says enough
  }
}

}  // namespace
}  // namespace planewise
