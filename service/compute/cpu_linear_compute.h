#ifndef PLANEWISE_SERVICE_COMPUTE_CPU_LINEAR_COMPUTE_H_
#define PLANEWISE_SERVICE_COMPUTE_CPU_LINEAR_COMPUTE_H_
// The CPU backend: core/layer/linear.h behind the interface of backends.

#include <memory>

#include "core/layer/linear.h"
#include "service/compute/linear_compute.h"

namespace planewise {

// `context`'s objects outlive it.
std::unique_ptr<LinearCompute> MakeCpuLinearCompute(const ComputeContext& context);

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_COMPUTE_CPU_LINEAR_COMPUTE_H_
