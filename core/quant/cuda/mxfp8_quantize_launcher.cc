#include "core/quant/cuda/mxfp8_quantize_launcher.h"

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/reason.h"
#include "core/base/status_macros.h"
#include "core/device/cuda_status.h"
#include "core/quant/cuda/mxfp8_quantize_kernel.h"
#include "core/quant/cuda/mxfp8_quantize_params.h"

namespace planewise {
namespace {

constexpr uintptr_t kAlignmentBytes = 16;

absl::Status CheckAligned(const Mxfp8QuantizeProblem& problem, absl::string_view name,
                          const void* pointer) {
  const uintptr_t excess = reinterpret_cast<uintptr_t>(pointer) % kAlignmentBytes;
  if (excess == 0) return absl::OkStatus();
  return Error(Reason::kInvalidRequest,
               absl::StrCat(problem.ToString(), ": the address of ", name, " is ", excess,
                            " above a multiple of ", kAlignmentBytes, "; required 0"));
}

}  // namespace

absl::Status LaunchMxfp8Quantize(const Mxfp8QuantizeProblem& problem,
                                 const Mxfp8QuantizePlan& plan,
                                 const Mxfp8QuantizeBuffers& buffers, cudaStream_t stream) {
  PW_RETURN_IF_ERROR(CheckAligned(problem, "source", buffers.source));
  PW_RETURN_IF_ERROR(CheckAligned(problem, "payload", buffers.payload));
  PW_RETURN_IF_ERROR(CheckAligned(problem, "scales", buffers.scales));
  if (plan.grid_blocks == 0) return absl::OkStatus();
  Mxfp8QuantizeParams params;
  params.source = buffers.source;
  params.payload = buffers.payload;
  params.scales = buffers.scales;
  params.rows = static_cast<uint32_t>(problem.rows());
  params.blocks_per_row = static_cast<uint32_t>(problem.row.used_scale_columns);
  params.scale_columns = static_cast<uint32_t>(problem.row.scale_columns);
  params.scale_count = static_cast<uint32_t>(problem.row.scale_bytes);
  EnqueueMxfp8Quantize(problem.source, problem.row.payload_dtype, plan, params, stream);
  return CudaLaunchStatus(problem.ToString());
}

}  // namespace planewise
