#ifndef PLANEWISE_CORE_QUANT_CUDA_MXFP8_QUANTIZE_KERNEL_H_
#define PLANEWISE_CORE_QUANT_CUDA_MXFP8_QUANTIZE_KERNEL_H_
// From host code to the kernel's instantiations. Checks nothing and reports
// nothing: call it through mxfp8_quantize_launcher.h.

#include <cuda_runtime_api.h>

#include "core/quant/cuda/mxfp8_quantize_params.h"
#include "core/quant/cuda/mxfp8_quantize_plan.h"

namespace planewise {

// Enqueues the kernel for `source` (F32, BF16, F16) and `element` (E4M3, E5M2).
void EnqueueMxfp8Quantize(DType source, DType element, const Mxfp8QuantizePlan& plan,
                          const Mxfp8QuantizeParams& params, cudaStream_t stream);

}  // namespace planewise

#endif  // PLANEWISE_CORE_QUANT_CUDA_MXFP8_QUANTIZE_KERNEL_H_
