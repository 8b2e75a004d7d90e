#ifndef PLANEWISE_CORE_LAYER_READY_WEIGHT_H_
#define PLANEWISE_CORE_LAYER_READY_WEIGHT_H_
// W as a GEMM's operand: a stored plane, or one quantized for this call from a
// high-precision primary.
//
// Not here: which form a GEMM reads (linear_gemms.h).

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "core/base/thread_pool.h"
#include "core/gemm/gemm_operand.h"
#include "core/layer/linear_gemms.h"
#include "core/quant/quantizer.h"
#include "core/tensor/memory_budget.h"
#include "core/tensor/primary_weight.h"

namespace planewise {

struct ReadyWeight {
  GemmOperand operand;
  std::shared_ptr<const Plane> made;  // what the operand points into, if made
};

// `weight` has a fresh plane of that kind or, if it is made, a fresh
// high-precision one, which is quantized as `recipe` does it. RESOURCE_EXHAUSTED if
// a made plane does not fit.
absl::StatusOr<ReadyWeight> PrepareWeight(const Quantizer& quantizer, ThreadPool& pool,
                                          MemoryBudget& budget, const PrimaryWeight& weight,
                                          WeightOperand form, const Recipe& recipe);

// What PrepareWeight takes of kTransient.
absl::StatusOr<int64_t> MadeWeightBytes(const PrimaryWeight& weight, WeightOperand form,
                                        const Recipe& recipe);

// The exponents of W as far as they are known before the call: kAnyExponents of
// a plane that is yet to be made.
std::optional<ExponentRange> KnownExponents(const PrimaryWeight& weight, WeightOperand form);

}  // namespace planewise

#endif  // PLANEWISE_CORE_LAYER_READY_WEIGHT_H_
