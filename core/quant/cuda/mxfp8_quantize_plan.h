#ifndef PLANEWISE_CORE_QUANT_CUDA_MXFP8_QUANTIZE_PLAN_H_
#define PLANEWISE_CORE_QUANT_CUDA_MXFP8_QUANTIZE_PLAN_H_
// How a device quantizes to MXFP8: the division of the work. Pure, without CUDA.
//
// The work is divided by scale bytes, padding included, so that one pass writes
// every byte of the plane: a warp makes 32 consecutive scale bytes and the codes
// of the up to 32 blocks they belong to.

#include <cstdint>
#include <ostream>

#include "core/quant/cuda/mxfp8_quantize_problem.h"

namespace planewise {

struct Mxfp8QuantizePlan {
  int threads_per_block = 0;
  int64_t grid_blocks = 0;  // 0: nothing to do

  bool operator==(const Mxfp8QuantizePlan&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Mxfp8QuantizePlan& plan);

// Scale bytes that one warp makes.
inline constexpr int kMxfp8ScalesPerWarp = 32;

inline constexpr int kMxfp8ThreadsPerBlockMax = 256;

// The largest thread block that still gives each of the device's multiprocessors
// two, so that small matrices spread over the whole device.
Mxfp8QuantizePlan PlanMxfp8Quantize(const Mxfp8QuantizeProblem& problem,
                                    int multiprocessor_count);

// The plan with thread blocks of a given size, a multiple of 32.
Mxfp8QuantizePlan Mxfp8QuantizePlanWithThreads(const Mxfp8QuantizeProblem& problem,
                                               int threads_per_block);

}  // namespace planewise

#endif  // PLANEWISE_CORE_QUANT_CUDA_MXFP8_QUANTIZE_PLAN_H_
