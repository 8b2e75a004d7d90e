#include "service/server_capabilities.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/checkpoint/format_constants.h"
#include "core/gemm/gemm_path.h"
#include "core/layer/linear_gemms.h"
#include "core/layer/model_version.h"
#include "core/recipe/recipe.h"
#include "proto/version/api_version.h"
#include "service/version.h"

namespace planewise {
namespace {

v1::BackendCapability DescribeCpu(bool bf16_cpu) {
  v1::BackendCapability cpu;
  cpu.set_name("cpu");
  cpu.set_available(true);
  cpu.set_device(bf16_cpu ? "cpu with BF16 products"
                          : "cpu without BF16 products: computes in F32");
  for (const Format format : HostableFormats()) {
    if (!ComputesLinear(DefaultRecipe(format))) continue;
    const GemmPath path =
        format == Format::kNone ? GemmPath::kHighPrecision : GemmPath::kExpanded;
    (*cpu.mutable_gemm_path())[std::string(Name(format))] = std::string(Name(path));
  }
  return cpu;
}

v1::BackendCapability DescribeCuda(const CudaProbe& probe) {
  v1::BackendCapability cuda;
  cuda.set_name("cuda");
  if (probe.devices.empty()) {
    cuda.set_why_not(probe.why_not);
  } else {
    cuda.set_device(probe.devices.front().ToString());
    cuda.set_why_not("this build computes on the CPU only");
  }
  return cuda;
}

}  // namespace

v1::Capabilities DescribeCapabilities(const ServerOptions& options, const CudaProbe& cuda,
                                      bool bf16_cpu) {
  v1::Capabilities capabilities;
  capabilities.set_server_version(std::string(kServerVersion));
  capabilities.set_api_version(std::string(kApiVersion));
  capabilities.set_store_format_version(kStoreFormatVersion);
  for (const Format format : HostableFormats()) {
    capabilities.add_formats(std::string(Name(format)));
  }
  for (const BackwardOverride value : {BackwardOverride::kNone, BackwardOverride::kHighPrecision,
                                       BackwardOverride::kDequantized}) {
    capabilities.add_backward_overrides(std::string(Name(value)));
  }
  capabilities.add_layer_kinds(std::string(Name(LayerKind::kLinear)));
  *capabilities.add_backends() = DescribeCpu(bf16_cpu);
  *capabilities.add_backends() = DescribeCuda(cuda);
  capabilities.add_transports("grpc");
  capabilities.set_chunk_bytes(options.session.chunk_bytes_max);
  capabilities.set_session_input_window_bytes(options.session.input_window_bytes);
  capabilities.set_session_result_budget_bytes(options.session.result_budget_bytes);
  capabilities.set_session_saved_operand_budget_bytes(options.session.saved_operand_budget_bytes);
  capabilities.set_max_sessions(options.session.sessions_max);
  capabilities.set_max_live_versions(options.catalog.live_versions_max);
  capabilities.set_session_timeout_ms(absl::ToInt64Milliseconds(options.session.timeout));
  capabilities.set_memory_limit_bytes(options.memory_limit_bytes);
  return capabilities;
}

}  // namespace planewise
