#include "tests/sim/sim_link.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace planewise {
namespace {

// Frames on their way in one direction. A transport writes the next one when
// the last one has left, so few are.
constexpr size_t kOnTheirWayMax = 3;

}  // namespace

SimLink::SimLink(SessionTable& table, SessionClient& client, const Clock& clock, SimRandom& random,
                 const LinkFaults& faults, FrameJudge judge)
    : table_(table),
      client_(client),
      clock_(clock),
      random_(random),
      faults_(faults),
      judge_(std::move(judge)),
      stream_(table.AddStream(Principal{"sim"}, [this] { writable_ = true; })) {
  client_.OnStreamOpened(clock_.Now());
}

SimLink::~SimLink() { Break(); }

void SimLink::Break() {
  if (std::exchange(broken_, true)) return;
  table_.RemoveStream(stream_);
  requests_.clear();
  replies_.clear();
  held_requests_.clear();
  held_replies_.clear();
}

bool SimLink::Step() {
  if (broken_) return false;
  if (faults_.stream_break > 0 && random_.OneIn(faults_.stream_break * 4)) {
    Break();
    client_.OnStreamBroken(clock_.Now(), absl::UnavailableError("the simulated network broke"));
    return true;
  }
  // Any of the four that can, beginning anywhere; then what was held back.
  const int64_t first = random_.Below(4);
  for (int64_t i = 0; i < 4; ++i) {
    switch ((first + i) % 4) {
      case 0: if (TakeRequest()) return true; break;
      case 1: if (DeliverRequest()) return true; break;
      case 2: if (TakeReply()) return true; break;
      case 3: if (DeliverReply()) return true; break;
    }
  }
  return Release(held_requests_) || Release(held_replies_);
}

bool SimLink::TakeRequest() {
  if (requests_.size() >= kOnTheirWayMax) return false;
  std::optional<SessionClient::OutgoingFrame> next = client_.NextFrame(clock_.Now());
  if (!next.has_value()) return false;
  requests_.push_back({std::move(next->frame), std::string(next->data)});
  return true;
}

bool SimLink::DeliverRequest() {
  if (requests_.empty()) return false;
  if (Suffer(requests_)) return true;
  const Request request = std::move(requests_.front());
  requests_.pop_front();
  Deliver(FrameDirection::kRequest, request, held_requests_);
  return true;
}

void SimLink::Give(const Request& given) {
  const auto request = std::make_shared<const Request>(given);
  // In slices, as a transport hands them over.
  const auto* bytes = reinterpret_cast<const std::byte*>(request->data.data());
  const size_t half = request->data.size() / 2;
  const absl::Span<const std::byte> slices[] = {{bytes, half},
                                                {bytes + half, request->data.size() - half}};
  table_.OnFrame(stream_, request->frame, slices, request);
}

bool SimLink::TakeReply() {
  if (!writable_ || replies_.size() >= kOnTheirWayMax) return false;
  std::optional<OutgoingFrame> next = table_.NextFrame(stream_);
  writable_ = next.has_value();
  if (!next.has_value()) return false;
  replies_.push_back(*std::move(next));
  return true;
}

bool SimLink::DeliverReply() {
  if (replies_.empty() || stalled_) return false;
  if (Suffer(replies_)) return true;
  const OutgoingFrame reply = std::move(replies_.front());
  replies_.pop_front();
  Deliver(FrameDirection::kReply, reply, held_replies_);
  return true;
}

void SimLink::Give(const OutgoingFrame& reply) {
  if (broken_) return;
  const absl::string_view data(reinterpret_cast<const char*>(reply.data), reply.size_bytes);
  const absl::string_view slices[] = {data.substr(0, data.size() / 3),
                                      data.substr(data.size() / 3)};
  client_.OnFrame(clock_.Now(), reply.header, slices);
  if (reply.last) {
    Break();
    client_.OnStreamBroken(clock_.Now(), absl::OkStatus());
  }
}

// Does with the frame what the test says.
template <typename Frame>
void SimLink::Deliver(FrameDirection direction, const Frame& frame, std::deque<Frame>& held) {
  const FrameFate fate = judge_ ? judge_(direction) : FrameFate::kDeliver;
  if (fate == FrameFate::kDrop) return;
  if (fate == FrameFate::kSwap || fate == FrameFate::kHold) {
    swapping_ = fate == FrameFate::kSwap;
    held.push_back(frame);
    return;
  }
  Give(frame);
  if (fate == FrameFate::kDouble) Give(frame);
  if (swapping_) Release(held);
}

// Gives what was held back; false if nothing was.
template <typename Frame>
bool SimLink::Release(std::deque<Frame>& held) {
  if (held.empty()) return false;
  const Frame frame = std::move(held.front());
  held.pop_front();
  Give(frame);
  return true;
}

// Lets a fault have its way with the frame that is next; true if one did.
template <typename Frame>
bool SimLink::Suffer(std::deque<Frame>& frames) {
  if (faults_.drop > 0 && random_.OneIn(faults_.drop)) {
    frames.pop_front();
    return true;
  }
  if (faults_.duplicate > 0 && random_.OneIn(faults_.duplicate)) {
    frames.push_back(frames.front());
    return true;
  }
  if (faults_.delay > 0 && frames.size() > 1 && random_.OneIn(faults_.delay)) {
    const auto place = frames.begin() + 1 + random_.Below(static_cast<int64_t>(frames.size()) - 1);
    std::rotate(frames.begin(), frames.begin() + 1, place + 1);
    return true;
  }
  return false;
}

}  // namespace planewise
