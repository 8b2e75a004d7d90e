#ifndef PLANEWISE_CORE_QUANT_CUDA_MXFP8_QUANTIZE_LAUNCHER_H_
#define PLANEWISE_CORE_QUANT_CUDA_MXFP8_QUANTIZE_LAUNCHER_H_
// Runs an MXFP8 row quantization on the current device.
//
// Not here: checks of the shape (mxfp8_quantize_problem.h), the choice of launch
// (mxfp8_quantize_plan.h).

#include <cuda_runtime_api.h>

#include <cstdint>

#include "absl/status/status.h"
#include "core/quant/cuda/mxfp8_quantize_plan.h"
#include "core/quant/cuda/mxfp8_quantize_problem.h"

namespace planewise {

// Device memory of a problem; each pointer aligned to 16.
struct Mxfp8QuantizeBuffers {
  const void* source = nullptr;  // [rows, columns], problem.source
  uint8_t* payload = nullptr;    // problem.row.payload_bytes
  uint8_t* scales = nullptr;     // problem.row.scale_bytes
};

// Enqueues on `stream` and does not wait. Every byte of payload and scales is
// written, scale padding as 0; the bytes are those of ScalarQuantizer.
// INVALID_REQUEST if a pointer is not aligned; else as CudaLaunchStatus.
absl::Status LaunchMxfp8Quantize(const Mxfp8QuantizeProblem& problem,
                                 const Mxfp8QuantizePlan& plan,
                                 const Mxfp8QuantizeBuffers& buffers, cudaStream_t stream);

}  // namespace planewise

#endif  // PLANEWISE_CORE_QUANT_CUDA_MXFP8_QUANTIZE_LAUNCHER_H_
