#ifndef PLANEWISE_PLANNER_ESTIMATE_RATES_H_
#define PLANEWISE_PLANNER_ESTIMATE_RATES_H_
// The rates behind every time that the planner states. They are constants so
// that the same question has the same answer; a time is an estimate, bytes are
// exact.
//
// Not here: measurements (tests/bench/RESULTS.md).

#include <cstdint>

namespace planewise {

// Converting a weight between formats, bytes read plus bytes written. memcpy
// moves 10 GB/s on a 2-core Debian 12 machine with AVX-512, and quantizing is
// held to half of it per core.
inline constexpr double kConvertBytesPerSecond = 5e9;

// Masters from a trainer over gRPC: the slowest chunk size measured there, one
// stream of 256 KiB messages.
inline constexpr double kUploadBytesPerSecond = 1.3e9;

// A checkpoint from disk. Assumed, not measured: a virtual machine's SSD.
inline constexpr double kSourceReadBytesPerSecond = 1e9;

constexpr double SecondsOf(int64_t bytes, double bytes_per_second) {
  return static_cast<double>(bytes) / bytes_per_second;
}

}  // namespace planewise

#endif  // PLANEWISE_PLANNER_ESTIMATE_RATES_H_
