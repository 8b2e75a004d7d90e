#include "core/device/cuda_status.h"

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/reason.h"

namespace planewise {
namespace {

Reason ReasonFor(cudaError_t result) {
  switch (result) {
    case cudaErrorMemoryAllocation:
      return Reason::kMemoryShortfall;
    case cudaErrorInsufficientDriver:
    case cudaErrorNoDevice:
    case cudaErrorNoKernelImageForDevice:
      return Reason::kArchUnsupported;
    // After these the context answers every call with the same error.
    case cudaErrorECCUncorrectable:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalAddress:
    case cudaErrorIllegalInstruction:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorMisalignedAddress:
      return Reason::kDeviceLost;
    default:
      return Reason::kInternal;
  }
}

}  // namespace

absl::Status CudaStatus(cudaError_t result, absl::string_view action) {
  if (result == cudaSuccess) return absl::OkStatus();
  return Error(ReasonFor(result), absl::StrCat(action, ": ", cudaGetErrorName(result), ": ",
                                               cudaGetErrorString(result)));
}

absl::Status CudaLaunchStatus(absl::string_view action) {
  return CudaStatus(cudaGetLastError(), action);
}

}  // namespace planewise
