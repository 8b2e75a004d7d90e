#ifndef PLANEWISE_CORE_DEVICE_CUDA_STATUS_H_
#define PLANEWISE_CORE_DEVICE_CUDA_STATUS_H_
// CUDA's results as absl::Status: the only place that reads them.
//
// Not here: what to do about a lost device (the service restarts from its store).

#include <cuda_runtime_api.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace planewise {

// `result` of a runtime call; `action` says what was tried and on what, for
// example "allocate 4096 device bytes".
//   MEMORY_SHORTFALL   out of device memory; nothing was taken
//   ARCH_UNSUPPORTED   no driver, no device, or no machine code for the device
//   DEVICE_LOST        the device context is broken for good
//   INTERNAL           anything else: a call of ours was wrong
absl::Status CudaStatus(cudaError_t result, absl::string_view action);

// The result of the launches that this thread made since the last call.
absl::Status CudaLaunchStatus(absl::string_view action);

}  // namespace planewise

#endif  // PLANEWISE_CORE_DEVICE_CUDA_STATUS_H_
