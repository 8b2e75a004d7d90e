#include "core/quant/cuda/mxfp8_quantize_plan.h"

#include "core/base/checked_math.h"

namespace planewise {
namespace {

constexpr int kThreadsPerWarp = 32;
constexpr int kThreadsPerBlockMin = 64;
constexpr int kBlocksPerMultiprocessorMin = 2;

}  // namespace

std::ostream& operator<<(std::ostream& out, const Mxfp8QuantizePlan& plan) {
  return out << plan.grid_blocks << " blocks of " << plan.threads_per_block << " threads";
}

Mxfp8QuantizePlan PlanMxfp8Quantize(const Mxfp8QuantizeProblem& problem,
                                    int multiprocessor_count) {
  Mxfp8QuantizePlan plan = Mxfp8QuantizePlanWithThreads(problem, kMxfp8ThreadsPerBlockMax);
  while (plan.threads_per_block > kThreadsPerBlockMin &&
         plan.grid_blocks < int64_t{kBlocksPerMultiprocessorMin} * multiprocessor_count) {
    plan = Mxfp8QuantizePlanWithThreads(problem, plan.threads_per_block / 2);
  }
  return plan;
}

Mxfp8QuantizePlan Mxfp8QuantizePlanWithThreads(const Mxfp8QuantizeProblem& problem,
                                               int threads_per_block) {
  const int64_t scales_per_block = threads_per_block / kThreadsPerWarp * kMxfp8ScalesPerWarp;
  return {threads_per_block, CeilDivide(problem.row.scale_bytes, scales_per_block)};
}

}  // namespace planewise
