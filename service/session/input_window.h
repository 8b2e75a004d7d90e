#ifndef PLANEWISE_SERVICE_SESSION_INPUT_WINDOW_H_
#define PLANEWISE_SERVICE_SESSION_INPUT_WINDOW_H_
// How far a client may send: the position that it must not reach. Only numbers;
// the bytes are operation_assembly.h's.

#include <algorithm>
#include <cstdint>

namespace planewise {

// One thread.
class InputWindow {
 public:
  explicit InputWindow(int64_t window_bytes)
      : window_bytes_(static_cast<uint64_t>(window_bytes)), limit_(window_bytes_) {}

  // The client sends no byte at or past it. Never falls: what was promised once
  // may be on its way.
  uint64_t limit() const { return limit_; }

  // Bytes before `position` take no room in the window any more: they were
  // executed, dropped, or moved to an operation that was admitted on its own.
  void MoveTo(uint64_t position) { limit_ = std::max(limit_, position + window_bytes_); }

 private:
  const uint64_t window_bytes_;
  uint64_t limit_;
};

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_SESSION_INPUT_WINDOW_H_
