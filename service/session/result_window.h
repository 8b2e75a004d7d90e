#ifndef PLANEWISE_SERVICE_SESSION_RESULT_WINDOW_H_
#define PLANEWISE_SERVICE_SESSION_RESULT_WINDOW_H_
// The result byte string of a session as numbers: what is held, what may be
// sent, what was sent. The bytes are result_queue.h's.
//
//   0 ... begin ......... sent ......... limit ......... end
//         |<------------------- held ------------------->|

#include <algorithm>
#include <cstdint>

#include "service/session/byte_ranges.h"

namespace planewise {

// One thread.
class ResultWindow {
 public:
  explicit ResultWindow(int64_t budget_bytes)
      : budget_bytes_(static_cast<uint64_t>(budget_bytes)) {}

  // May a result of that size be made? One above the budget is admitted on its
  // own, when nothing else is held.
  bool HasRoomFor(int64_t size_bytes) const {
    return held() == 0 || held() + static_cast<uint64_t>(size_bytes) <= budget_bytes_;
  }

  // Adds a result and returns its position.
  uint64_t Append(int64_t size_bytes) {
    const uint64_t position = end_;
    end_ += static_cast<uint64_t>(size_bytes);
    return position;
  }

  // Results before `position` are not held any more.
  void ReleaseTo(uint64_t position) {
    begin_ = position;
    sent_ = std::max(sent_, begin_);
  }

  // The client takes bytes before `position`. Never falls.
  void RaiseLimit(uint64_t position) { limit_ = std::max(limit_, position); }

  // What may be sent now, at most `size_bytes_max`; empty: nothing.
  ByteRange Sendable(int64_t size_bytes_max) const {
    const uint64_t end = std::min({end_, limit_, sent_ + static_cast<uint64_t>(size_bytes_max)});
    return {sent_, std::max(sent_, end)};
  }
  void MarkSent(uint64_t position) { sent_ = position; }
  // Sends again from `position` on.
  void Rewind(uint64_t position) { sent_ = std::min(sent_, std::max(position, begin_)); }

  uint64_t end() const { return end_; }
  uint64_t held() const { return end_ - begin_; }

 private:
  const uint64_t budget_bytes_;
  uint64_t begin_ = 0;
  uint64_t end_ = 0;
  uint64_t sent_ = 0;
  uint64_t limit_ = 0;
};

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_SESSION_RESULT_WINDOW_H_
