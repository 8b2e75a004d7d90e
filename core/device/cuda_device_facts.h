#ifndef PLANEWISE_CORE_DEVICE_CUDA_DEVICE_FACTS_H_
#define PLANEWISE_CORE_DEVICE_CUDA_DEVICE_FACTS_H_
// What accelerators this machine has, or why it has none. Asks the driver
// through libcuda.so.1, opened at run time: the same binary starts on a machine
// without a driver, and no CUDA header is needed to build this.
//
// Not here: memory and launches (device_buffer.h, */cuda/).

#include <cstdint>
#include <string>
#include <vector>

namespace planewise {

struct CudaDeviceFacts {
  int ordinal = 0;  // as the driver counts, CUDA_VISIBLE_DEVICES applied
  std::string name;
  int sm_major = 0;
  int sm_minor = 0;
  int multiprocessor_count = 0;
  int64_t memory_bytes = 0;

  bool operator==(const CudaDeviceFacts&) const = default;

  // "NVIDIA H200, SM 9.0, 132 multiprocessors, 150754820096 bytes"
  std::string ToString() const;
};

// Devices, or the reason there are none; never both empty.
struct CudaProbe {
  std::vector<CudaDeviceFacts> devices;
  std::string why_not;
};

// Asks `driver_library`, a name as dlopen takes it, and keeps it loaded for the
// life of the process. Takes no device memory and makes no context.
CudaProbe ProbeCuda(const char* driver_library = "libcuda.so.1");

}  // namespace planewise

#endif  // PLANEWISE_CORE_DEVICE_CUDA_DEVICE_FACTS_H_
