#include "core/device/cuda_device_facts.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace planewise {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(CudaDeviceFactsTest, SaysThatTheDriverIsMissing) {
  const CudaProbe probe = ProbeCuda("libplanewise_no_such_driver.so.1");
  EXPECT_THAT(probe.devices, IsEmpty());
  EXPECT_THAT(probe.why_not, HasSubstr("no NVIDIA driver"));
  EXPECT_THAT(probe.why_not, HasSubstr("libplanewise_no_such_driver.so.1"));
}

TEST(CudaDeviceFactsTest, SaysWhichEntryPointADriverLacks) {
  // The C library loads, and is no driver.
  const CudaProbe probe = ProbeCuda("libc.so.6");
  EXPECT_THAT(probe.devices, IsEmpty());
  EXPECT_THAT(probe.why_not, HasSubstr("libc.so.6 has no cuInit"));
}

TEST(CudaDeviceFactsTest, HasDevicesOrAReasonOnThisMachine) {
  const CudaProbe probe = ProbeCuda();
  EXPECT_EQ(probe.devices.empty(), !probe.why_not.empty());
  for (const CudaDeviceFacts& facts : probe.devices) {
    EXPECT_THAT(facts.name, Not(IsEmpty()));
    EXPECT_GT(facts.sm_major, 0);
    EXPECT_GT(facts.multiprocessor_count, 0);
    EXPECT_GT(facts.memory_bytes, 0);
  }
}

TEST(CudaDeviceFactsTest, Prints) {
  const CudaDeviceFacts facts = {0, "NVIDIA H200", 9, 0, 132, 150754820096};
  EXPECT_EQ(facts.ToString(), "NVIDIA H200, SM 9.0, 132 multiprocessors, 150754820096 bytes");
}

}  // namespace
}  // namespace planewise
