#include "core/device/device_buffer.h"

#include <cuda_runtime_api.h>

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/reason.h"
#include "core/base/status_macros.h"
#include "core/device/cuda_status.h"

namespace planewise {

absl::StatusOr<DeviceBuffer> DeviceBuffer::Allocate(int64_t bytes) {
  if (bytes < 0) {
    return Error(Reason::kInvalidRequest,
                 absl::StrCat("device buffer of ", bytes, " bytes: the size must not be negative"));
  }
  DeviceBuffer buffer;
  if (bytes == 0) return buffer;
  PW_RETURN_IF_ERROR(CudaStatus(cudaMalloc(&buffer.data_, static_cast<size_t>(bytes)),
                                absl::StrCat("allocate ", bytes, " device bytes")));
  buffer.size_bytes_ = bytes;
  return buffer;
}

// If freeing fails, the context is gone and the memory with it.
DeviceBuffer::~DeviceBuffer() {
  if (data_ != nullptr) cudaFree(data_);
}

absl::Status DeviceBuffer::CopyFromHost(const void* source) {
  return CudaStatus(
      cudaMemcpy(data_, source, static_cast<size_t>(size_bytes_), cudaMemcpyHostToDevice),
      absl::StrCat("copy ", size_bytes_, " bytes to the device"));
}

absl::Status DeviceBuffer::CopyToHost(void* target) const {
  return CudaStatus(
      cudaMemcpy(target, data_, static_cast<size_t>(size_bytes_), cudaMemcpyDeviceToHost),
      absl::StrCat("copy ", size_bytes_, " bytes from the device"));
}

absl::Status DeviceBuffer::Fill(uint8_t value) {
  PW_RETURN_IF_ERROR(CudaStatus(cudaMemset(data_, value, static_cast<size_t>(size_bytes_)),
                                absl::StrCat("fill ", size_bytes_, " device bytes")));
  return CudaStatus(cudaDeviceSynchronize(), "wait for the device");
}

}  // namespace planewise
