// A fuzz target with a fault that only guided fuzzing finds quickly: proof that
// the harness instruments, explores and fails. .ci/run expects it to crash.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // One byte at a time: each right byte is new coverage to build on.
  constexpr char kSong[] = "tweet";
  size_t right = 0;
  while (right < std::strlen(kSong) && right < size && data[right] == kSong[right]) ++right;
  if (right == std::strlen(kSong)) std::abort();
  return 0;
}
