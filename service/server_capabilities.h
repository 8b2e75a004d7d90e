#ifndef PLANEWISE_SERVICE_SERVER_CAPABILITIES_H_
#define PLANEWISE_SERVICE_SERVER_CAPABILITIES_H_
// What GetCapabilities says, from settings and device facts: a pure function.
//
// Not here: answering the call (service/rpc/server_service.h), probing devices
// (core/device/cuda_device_facts.h).

#include "core/device/cuda_device_facts.h"
#include "planewise/v1/server.pb.h"
#include "service/server_options.h"

namespace planewise {

// `bf16_cpu`: the CPU multiplies BF16 in hardware. memory_used_bytes is left 0.
v1::Capabilities DescribeCapabilities(const ServerOptions& options, const CudaProbe& cuda,
                                      bool bf16_cpu);

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_SERVER_CAPABILITIES_H_
