// Speed of the device's kernels, as a ratio to a device-to-device copy that moves
// the same number of bytes, taken in turns in the same run.
//
// Buffers rotate: together they are several times the device's cache, so that
// every launch reads and writes memory.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <vector>

#include "core/base/status_macros.h"
#include "core/device/cuda_status.h"
#include "core/device/device_buffer.h"
#include "core/device/cuda_device_facts.h"
#include "core/quant/cuda/mxfp8_quantize_launcher.h"
#include "core/quant/cuda/mxfp8_quantize_plan.h"
#include "core/quant/cuda/mxfp8_quantize_problem.h"

namespace planewise {
namespace {

// Far above the 60 MB of cache of an H200.
constexpr int64_t kFootprintBytesMin = int64_t{1} << 30;
constexpr int kRounds = 15;
constexpr int kLaunchesPerRound = 12;

struct Set {
  DeviceBuffer source, payload, scales, copy_from, copy_to;
};

absl::StatusOr<std::vector<Set>> AllocateSets(const Mxfp8QuantizeProblem& problem) {
  const int64_t count = 2 + kFootprintBytesMin / problem.ideal_bytes();
  std::vector<Set> sets(static_cast<size_t>(count));
  for (Set& set : sets) {
    PW_ASSIGN_OR_RETURN(set.source, DeviceBuffer::Allocate(problem.source_bytes()));
    PW_ASSIGN_OR_RETURN(set.payload, DeviceBuffer::Allocate(problem.row.payload_bytes));
    PW_ASSIGN_OR_RETURN(set.scales, DeviceBuffer::Allocate(problem.row.scale_bytes));
    // A copy reads half of the bytes it moves and writes the other half.
    PW_ASSIGN_OR_RETURN(set.copy_from, DeviceBuffer::Allocate(problem.ideal_bytes() / 2));
    PW_ASSIGN_OR_RETURN(set.copy_to, DeviceBuffer::Allocate(problem.ideal_bytes() / 2));
    // Ordinary numbers of every dtype: 0x3C3C... is near 0.01 in each.
    PW_RETURN_IF_ERROR(set.source.Fill(0x3C));
  }
  return sets;
}

// Seconds per call of `enqueue(i)`, i = 0 ... kLaunchesPerRound - 1.
absl::StatusOr<double> TimeRound(const std::function<absl::Status(int)>& enqueue) {
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  PW_RETURN_IF_ERROR(CudaStatus(cudaEventCreate(&begin), "create an event"));
  PW_RETURN_IF_ERROR(CudaStatus(cudaEventCreate(&end), "create an event"));
  PW_RETURN_IF_ERROR(CudaStatus(cudaEventRecord(begin), "record an event"));
  for (int i = 0; i < kLaunchesPerRound; ++i) PW_RETURN_IF_ERROR(enqueue(i));
  PW_RETURN_IF_ERROR(CudaStatus(cudaEventRecord(end), "record an event"));
  PW_RETURN_IF_ERROR(CudaStatus(cudaEventSynchronize(end), "wait for an event"));
  float milliseconds = 0.0f;
  PW_RETURN_IF_ERROR(CudaStatus(cudaEventElapsedTime(&milliseconds, begin, end), "read events"));
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return double{milliseconds} / 1e3 / kLaunchesPerRound;
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

absl::Status Measure(const Mxfp8QuantizeProblem& problem, const Mxfp8QuantizePlan& plan,
                     const std::vector<Set>& sets) {
  size_t next = 0;
  const auto quantize = [&](int) {
    const Set& set = sets[next++ % sets.size()];
    return LaunchMxfp8Quantize(problem, plan,
                               {set.source.data(), set.payload.bytes(), set.scales.bytes()},
                               nullptr);
  };
  const auto copy = [&](int) {
    const Set& set = sets[next++ % sets.size()];
    return CudaStatus(cudaMemcpyAsync(set.copy_to.data(), set.copy_from.data(),
                                      static_cast<size_t>(set.copy_to.size_bytes()),
                                      cudaMemcpyDeviceToDevice, nullptr),
                      "copy on the device");
  };
  std::vector<double> quantize_seconds;
  std::vector<double> copy_seconds;
  for (int round = 0; round < kRounds; ++round) {
    PW_ASSIGN_OR_RETURN(const double one_copy, TimeRound(copy));
    PW_ASSIGN_OR_RETURN(const double one_quantize, TimeRound(quantize));
    if (round == 0) continue;  // Clocks and code are cold.
    copy_seconds.push_back(one_copy);
    quantize_seconds.push_back(one_quantize);
  }
  const double quantize_rate = problem.ideal_bytes() / Median(quantize_seconds) / 1e9;
  const double copy_rate = problem.ideal_bytes() / Median(copy_seconds) / 1e9;
  std::printf("%-56s %4d  %8.1f us  %7.0f GB/s  %7.0f GB/s  %5.3f\n", problem.ToString().c_str(),
              plan.threads_per_block, Median(quantize_seconds) * 1e6, quantize_rate, copy_rate,
              quantize_rate / copy_rate);
  return absl::OkStatus();
}

absl::Status Run(const CudaDeviceFacts& facts) {
  std::printf("%s\n", facts.ToString().c_str());
  std::printf("%-56s %4s  %11s  %12s  %12s  %5s\n", "problem", "thr", "time", "rate", "copy",
              "ratio");
  const struct {
    int64_t rows, columns;
  } shapes[] = {{4096, 4096}, {8192, 8192}, {16384, 14336}};
  for (const auto& [rows, columns] : shapes) {
    for (DType source : {DType::kBF16, DType::kF16, DType::kF32}) {
      PW_ASSIGN_OR_RETURN(const auto problem,
                          MakeMxfp8QuantizeProblem(rows, columns, source, DType::kF8E4M3));
      PW_ASSIGN_OR_RETURN(const std::vector<Set> sets, AllocateSets(problem));
      // The planned launch first, then the alternatives it was chosen from.
      PW_RETURN_IF_ERROR(
          Measure(problem, PlanMxfp8Quantize(problem, facts.multiprocessor_count), sets));
      for (int threads : {64, 128, 512}) {
        PW_RETURN_IF_ERROR(Measure(problem, Mxfp8QuantizePlanWithThreads(problem, threads), sets));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace planewise

int main() {
  const planewise::CudaProbe probe = planewise::ProbeCuda();
  if (probe.devices.empty()) {
    std::fprintf(stderr, "gpu_bench: no CUDA device: %s\n", probe.why_not.c_str());
    return 1;
  }
  const absl::Status status = planewise::Run(probe.devices[0]);
  if (!status.ok()) std::fprintf(stderr, "gpu_bench: %s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
