#ifndef PLANEWISE_CORE_DEVICE_DEVICE_BUFFER_H_
#define PLANEWISE_CORE_DEVICE_DEVICE_BUFFER_H_
// Device memory with an owner.
//
// Not here: host memory (core/tensor/host_buffer.h); which bytes may be taken
// (core/tensor/memory_budget.h).

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace planewise {

// Owns bytes on the current device, aligned to 256. Moves, does not copy.
// Freed on destruction, which waits for the device: not for the request path.
class DeviceBuffer {
 public:
  // INVALID_REQUEST for a negative size; MEMORY_SHORTFALL if the device has not
  // that much left. Zero bytes take nothing and have a null pointer.
  static absl::StatusOr<DeviceBuffer> Allocate(int64_t bytes);

  DeviceBuffer() = default;
  ~DeviceBuffer();
  DeviceBuffer(DeviceBuffer&& other) noexcept { *this = std::move(other); }
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_bytes_, other.size_bytes_);
    return *this;
  }

  void* data() const { return data_; }
  uint8_t* bytes() const { return static_cast<uint8_t*>(data_); }
  int64_t size_bytes() const { return size_bytes_; }

  // Copies all of the buffer from or to host memory of that size, and waits.
  absl::Status CopyFromHost(const void* source);
  absl::Status CopyToHost(void* target) const;
  // Sets every byte, and waits.
  absl::Status Fill(uint8_t value);

 private:
  void* data_ = nullptr;
  int64_t size_bytes_ = 0;
};

}  // namespace planewise

#endif  // PLANEWISE_CORE_DEVICE_DEVICE_BUFFER_H_
