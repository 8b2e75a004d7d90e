#ifndef PLANEWISE_SERVICE_SESSION_OUTGOING_FRAME_H_
#define PLANEWISE_SERVICE_SESSION_OUTGOING_FRAME_H_
// One frame to write: a message, and for a chunk the bytes lent from where they
// lie.

#include <cstddef>
#include <memory>

#include "planewise/v1/session.pb.h"

namespace planewise {

struct OutgoingFrame {
  v1::ServerFrame header;  // of a chunk: position only, data is empty
  // The chunk's bytes; they live as long as `owner`. nullptr for other frames.
  const std::byte* data = nullptr;
  size_t size_bytes = 0;
  std::shared_ptr<const void> owner;
  // After `ended`: finish the call with OK; the reason is in the frame.
  bool last = false;
};

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_SESSION_OUTGOING_FRAME_H_
