#include "core/device/cuda_device_facts.h"

#include <dlfcn.h>

#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"

namespace planewise {
namespace {

// The entry points of the driver that are asked, with the types of its stable
// interface: a device is an int, a result is an int with 0 for success.
struct Driver {
  int (*init)(unsigned flags) = nullptr;
  int (*device_get_count)(int* count) = nullptr;
  int (*device_get)(int* device, int ordinal) = nullptr;
  int (*device_get_name)(char* name, int length, int device) = nullptr;
  int (*device_get_attribute)(int* value, int attribute, int device) = nullptr;
  int (*device_total_memory)(size_t* bytes, int device) = nullptr;
  int (*get_error_name)(int result, const char** name) = nullptr;
};

constexpr int kMultiprocessorCount = 16;
constexpr int kComputeCapabilityMajor = 75;
constexpr int kComputeCapabilityMinor = 76;

template <typename Function>
bool Load(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  return function != nullptr;
}

// The first entry point that is missing, or nullptr.
const char* LoadAll(void* library, Driver& driver) {
  if (!Load(library, "cuInit", driver.init)) return "cuInit";
  if (!Load(library, "cuDeviceGetCount", driver.device_get_count)) return "cuDeviceGetCount";
  if (!Load(library, "cuDeviceGet", driver.device_get)) return "cuDeviceGet";
  if (!Load(library, "cuDeviceGetName", driver.device_get_name)) return "cuDeviceGetName";
  if (!Load(library, "cuDeviceGetAttribute", driver.device_get_attribute)) {
    return "cuDeviceGetAttribute";
  }
  if (!Load(library, "cuDeviceTotalMem_v2", driver.device_total_memory)) {
    return "cuDeviceTotalMem_v2";
  }
  if (!Load(library, "cuGetErrorName", driver.get_error_name)) return "cuGetErrorName";
  return nullptr;
}

std::string Describe(const Driver& driver, const char* call, int result) {
  const char* name = nullptr;
  driver.get_error_name(result, &name);
  return absl::StrCat(call, " failed: ", name != nullptr ? name : "unknown result", " (", result,
                      ")");
}

// Fills in `facts`; what went wrong, or empty.
std::string Ask(const Driver& driver, int ordinal, CudaDeviceFacts& facts) {
  facts.ordinal = ordinal;
  int device = 0;
  if (const int result = driver.device_get(&device, ordinal)) {
    return Describe(driver, "cuDeviceGet", result);
  }
  char name[256] = {};
  if (const int result = driver.device_get_name(name, sizeof(name), device)) {
    return Describe(driver, "cuDeviceGetName", result);
  }
  facts.name = name;
  size_t bytes = 0;
  if (const int result = driver.device_total_memory(&bytes, device)) {
    return Describe(driver, "cuDeviceTotalMem_v2", result);
  }
  facts.memory_bytes = static_cast<int64_t>(bytes);
  const std::pair<int, int*> wanted[] = {
      {kMultiprocessorCount, &facts.multiprocessor_count},
      {kComputeCapabilityMajor, &facts.sm_major},
      {kComputeCapabilityMinor, &facts.sm_minor},
  };
  for (const auto& [attribute, value] : wanted) {
    if (const int result = driver.device_get_attribute(value, attribute, device)) {
      return Describe(driver, "cuDeviceGetAttribute", result);
    }
  }
  return "";
}

CudaProbe WithoutDevices(std::string why_not) { return {{}, std::move(why_not)}; }

}  // namespace

std::string CudaDeviceFacts::ToString() const {
  return absl::StrCat(name, ", SM ", sm_major, ".", sm_minor, ", ", multiprocessor_count,
                      " multiprocessors, ", memory_bytes, " bytes");
}

CudaProbe ProbeCuda(const char* driver_library) {
  // Never closed: the driver does not survive being unloaded.
  void* library = dlopen(driver_library, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return WithoutDevices(absl::StrCat("no NVIDIA driver: ", dlerror()));
  }
  Driver driver;
  if (const char* missing = LoadAll(library, driver)) {
    return WithoutDevices(
        absl::StrCat(driver_library, " has no ", missing, ": it is too old or no driver"));
  }
  if (const int result = driver.init(0)) {
    return WithoutDevices(Describe(driver, "cuInit", result));
  }
  int count = 0;
  if (const int result = driver.device_get_count(&count)) {
    return WithoutDevices(Describe(driver, "cuDeviceGetCount", result));
  }
  if (count == 0) return WithoutDevices("the driver sees no device");

  CudaProbe probe;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    CudaDeviceFacts facts;
    if (const std::string reason = Ask(driver, ordinal, facts); !reason.empty()) {
      return WithoutDevices(absl::StrCat("device ", ordinal, ": ", reason));
    }
    probe.devices.push_back(std::move(facts));
  }
  return probe;
}

}  // namespace planewise
