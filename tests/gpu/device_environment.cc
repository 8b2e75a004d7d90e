// Without a device the suite fails before its first test, and says why: a suite
// that skips itself proves nothing.

#include <cstdio>

#include "core/device/cuda_device_facts.h"
#include "gtest/gtest.h"

namespace planewise {
namespace {

class DeviceEnvironment : public testing::Environment {
 public:
  void SetUp() override {
    const CudaProbe probe = ProbeCuda();
    ASSERT_FALSE(probe.devices.empty()) << "no CUDA device: " << probe.why_not;
    std::printf("%s\n", probe.devices[0].ToString().c_str());
  }
};

// GoogleTest owns it.
const testing::Environment* const kDevice =
    testing::AddGlobalTestEnvironment(new DeviceEnvironment);

}  // namespace
}  // namespace planewise
