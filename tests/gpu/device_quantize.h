#ifndef PLANEWISE_TESTS_GPU_DEVICE_QUANTIZE_H_
#define PLANEWISE_TESTS_GPU_DEVICE_QUANTIZE_H_
// Runs the MXFP8 row quantizer of the device on host memory, with guard bytes
// around what it writes.

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "core/numeric/dtype.h"
#include "core/tensor/matrix_view.h"

namespace planewise {

struct DeviceRowPlane {
  std::vector<uint8_t> payload;  // [rows, columns]
  std::vector<uint8_t> scales;   // [up(rows, 128), up(columns / 32, 4)]
  bool guards_intact = false;    // no byte beside the two was written
};

// `threads_per_block` 0: as planned for this device.
absl::StatusOr<DeviceRowPlane> QuantizeOnDevice(MatrixView source, DType element,
                                                int threads_per_block = 0);

}  // namespace planewise

#endif  // PLANEWISE_TESTS_GPU_DEVICE_QUANTIZE_H_
