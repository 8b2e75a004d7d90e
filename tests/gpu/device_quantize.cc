#include "tests/gpu/device_quantize.h"

#include <algorithm>

#include "core/base/status_macros.h"
#include "core/device/cuda_status.h"
#include "core/device/device_buffer.h"
#include "core/device/cuda_device_facts.h"
#include "core/quant/cuda/mxfp8_quantize_launcher.h"
#include "core/quant/cuda/mxfp8_quantize_plan.h"
#include "core/quant/cuda/mxfp8_quantize_problem.h"

namespace planewise {
namespace {

// Keeps what lies between the guards aligned as the kernel requires.
constexpr int64_t kGuardBytes = 256;
// Not 0: a byte that the kernel should have written must not look written.
constexpr uint8_t kFiller = 0xA5;

// Device bytes between two guards.
class GuardedDeviceBytes {
 public:
  static absl::StatusOr<GuardedDeviceBytes> Allocate(int64_t bytes) {
    GuardedDeviceBytes guarded;
    PW_ASSIGN_OR_RETURN(guarded.buffer_, DeviceBuffer::Allocate(bytes + 2 * kGuardBytes));
    PW_RETURN_IF_ERROR(guarded.buffer_.Fill(kFiller));
    return guarded;
  }

  uint8_t* data() const { return buffer_.bytes() + kGuardBytes; }

  // The bytes between the guards; clears `intact` if a guard was written.
  absl::StatusOr<std::vector<uint8_t>> Read(bool& intact) const {
    std::vector<uint8_t> all(static_cast<size_t>(buffer_.size_bytes()));
    PW_RETURN_IF_ERROR(buffer_.CopyToHost(all.data()));
    const auto is_filler = [](uint8_t byte) { return byte == kFiller; };
    intact = intact && std::all_of(all.begin(), all.begin() + kGuardBytes, is_filler) &&
             std::all_of(all.end() - kGuardBytes, all.end(), is_filler);
    return std::vector<uint8_t>(all.begin() + kGuardBytes, all.end() - kGuardBytes);
  }

 private:
  DeviceBuffer buffer_;
};

}  // namespace

absl::StatusOr<DeviceRowPlane> QuantizeOnDevice(MatrixView source, DType element,
                                                int threads_per_block) {
  PW_ASSIGN_OR_RETURN(const Mxfp8QuantizeProblem problem,
                      MakeMxfp8QuantizeProblem(source.rows, source.columns, source.dtype, element));
  const Mxfp8QuantizePlan plan =
      threads_per_block == 0
          ? PlanMxfp8Quantize(problem, ProbeCuda().devices.at(0).multiprocessor_count)
          : Mxfp8QuantizePlanWithThreads(problem, threads_per_block);

  PW_ASSIGN_OR_RETURN(DeviceBuffer input, DeviceBuffer::Allocate(problem.source_bytes()));
  PW_RETURN_IF_ERROR(input.CopyFromHost(source.data));
  PW_ASSIGN_OR_RETURN(const GuardedDeviceBytes payload,
                      GuardedDeviceBytes::Allocate(problem.row.payload_bytes));
  PW_ASSIGN_OR_RETURN(const GuardedDeviceBytes scales,
                      GuardedDeviceBytes::Allocate(problem.row.scale_bytes));
  PW_RETURN_IF_ERROR(LaunchMxfp8Quantize(
      problem, plan, {input.data(), payload.data(), scales.data()}, nullptr));
  PW_RETURN_IF_ERROR(CudaStatus(cudaDeviceSynchronize(), problem.ToString()));

  DeviceRowPlane plane;
  plane.guards_intact = true;
  PW_ASSIGN_OR_RETURN(plane.payload, payload.Read(plane.guards_intact));
  PW_ASSIGN_OR_RETURN(plane.scales, scales.Read(plane.guards_intact));
  return plane;
}

}  // namespace planewise
