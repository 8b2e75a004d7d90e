#include "core/quant/cuda/mxfp8_quantize_kernel.cuh"

#include "core/quant/cuda/mxfp8_quantize_kernel.h"

namespace planewise {
namespace {

template <typename Source>
void Enqueue(DType element, const Mxfp8QuantizePlan& plan, const Mxfp8QuantizeParams& params,
             cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(plan.grid_blocks));
  const dim3 block(static_cast<unsigned>(plan.threads_per_block));
  if (element == DType::kF8E5M2) {
    Mxfp8QuantizeKernel<Source, Float8E5M2><<<grid, block, 0, stream>>>(params);
  } else {
    Mxfp8QuantizeKernel<Source, Float8E4M3><<<grid, block, 0, stream>>>(params);
  }
}

}  // namespace

void EnqueueMxfp8Quantize(DType source, DType element, const Mxfp8QuantizePlan& plan,
                          const Mxfp8QuantizeParams& params, cudaStream_t stream) {
  switch (source) {
    case DType::kF32:
      return Enqueue<float>(element, plan, params, stream);
    case DType::kF16:
      return Enqueue<__half>(element, plan, params, stream);
    default:
      return Enqueue<__nv_bfloat16>(element, plan, params, stream);
  }
}

}  // namespace planewise
