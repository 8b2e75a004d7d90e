#include "core/device/cuda_status.h"

#include <string>

#include "core/base/error.h"
#include "core/base/reason.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace planewise {
namespace {

using ::testing::HasSubstr;

TEST(CudaStatusTest, SuccessIsOk) { EXPECT_TRUE(CudaStatus(cudaSuccess, "copy").ok()); }

TEST(CudaStatusTest, SaysWhatWasTriedAndWhatCudaCallsIt) {
  const absl::Status status = CudaStatus(cudaErrorInvalidValue, "copy 32 bytes");
  EXPECT_THAT(std::string(status.message()), HasSubstr("copy 32 bytes: cudaErrorInvalidValue: "));
}

struct Case {
  const char* name;
  cudaError_t result;
  Reason reason;
  absl::StatusCode code;
};

const Case kCases[] = {
    {"out of memory leaves everything as it was", cudaErrorMemoryAllocation,
     Reason::kMemoryShortfall, absl::StatusCode::kResourceExhausted},
    {"no driver", cudaErrorInsufficientDriver, Reason::kArchUnsupported,
     absl::StatusCode::kFailedPrecondition},
    {"not built for this chip", cudaErrorNoKernelImageForDevice, Reason::kArchUnsupported,
     absl::StatusCode::kFailedPrecondition},
    {"a kernel wrote outside its memory", cudaErrorIllegalAddress, Reason::kDeviceLost,
     absl::StatusCode::kAborted},
    {"a watchdog ended the kernel", cudaErrorLaunchTimeout, Reason::kDeviceLost,
     absl::StatusCode::kAborted},
    {"a wrong argument is a fault of ours", cudaErrorInvalidValue, Reason::kInternal,
     absl::StatusCode::kInternal},
};

TEST(CudaStatusTest, EveryKindOfFailureHasItsReason) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const absl::Status status = CudaStatus(c.result, "launch");
    EXPECT_EQ(ReasonOf(status), c.reason);
    EXPECT_EQ(status.code(), c.code);
  }
}

}  // namespace
}  // namespace planewise
