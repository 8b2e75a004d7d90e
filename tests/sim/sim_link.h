#ifndef PLANEWISE_TESTS_SIM_SIM_LINK_H_
#define PLANEWISE_TESTS_SIM_SIM_LINK_H_
// One stream between a client's session logic and the daemon's session table,
// worse than any real one: frames get lost, come twice and overtake each other
// in both directions, and the stream breaks.

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "clients/cpp/session_client.h"
#include "core/base/clock.h"
#include "service/session/session_table.h"
#include "tests/sim/sim_random.h"

namespace planewise {

// How often each happens to a frame: once in so many; 0: never.
struct LinkFaults {
  int64_t drop = 0;
  int64_t duplicate = 0;
  int64_t delay = 0;
  int64_t stream_break = 0;
};

// What a test may do with each frame, once chance has had its turn.
enum class FrameDirection { kRequest, kReply };
enum class FrameFate {
  kDeliver,
  kDrop,
  kDouble,   // comes twice
  kSwap,     // comes after the next one of its direction
  kHold,     // comes when nothing else is left to do on the stream
};
using FrameJudge = std::function<FrameFate(FrameDirection)>;

// One thread. Begins with the client's stream, ends when it breaks or the daemon
// has ended it.
class SimLink {
 public:
  // All outlive it. `judge` may be empty: kDeliver.
  SimLink(SessionTable& table, SessionClient& client, const Clock& clock, SimRandom& random,
          const LinkFaults& faults, FrameJudge judge);
  ~SimLink();

  // One step of the stream, by chance; false if there was nothing to do.
  bool Step();
  // The stream is gone, for the daemon at once.
  void Break();
  bool broken() const { return broken_; }

  // Replies are not read from now on, or are again.
  void Stall(bool stalled) { stalled_ = stalled; }

 private:
  struct Request {
    v1::ClientFrame frame;
    std::string data;
  };

  bool TakeRequest();
  bool DeliverRequest();
  bool TakeReply();
  bool DeliverReply();
  void Give(const Request& request);
  void Give(const OutgoingFrame& reply);
  template <typename Frame>
  bool Suffer(std::deque<Frame>& frames);
  template <typename Frame>
  void Deliver(FrameDirection direction, const Frame& frame, std::deque<Frame>& held);
  template <typename Frame>
  bool Release(std::deque<Frame>& held);

  SessionTable& table_;
  SessionClient& client_;
  const Clock& clock_;
  SimRandom& random_;
  const LinkFaults faults_;
  const FrameJudge judge_;
  StreamId stream_;
  bool broken_ = false;
  bool stalled_ = false;
  bool writable_ = false;  // the daemon has something for us
  std::deque<Request> requests_;
  std::deque<OutgoingFrame> replies_;
  // What others overtake.
  std::deque<Request> held_requests_;
  std::deque<OutgoingFrame> held_replies_;
  bool swapping_ = false;  // the next frame of a held one's direction releases it
};

}  // namespace planewise

#endif  // PLANEWISE_TESTS_SIM_SIM_LINK_H_
