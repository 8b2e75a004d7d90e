#ifndef PLANEWISE_SERVICE_SESSION_SESSION_LIMITS_H_
#define PLANEWISE_SERVICE_SESSION_SESSION_LIMITS_H_
// Every limit of a session, with the reason for its default. A client that hits
// one is told its name and value (LIMIT_EXCEEDED, QUOTA_EXCEEDED).

#include <cstdint>

#include "absl/time/time.h"

namespace planewise {

struct SessionLimits {
  int sessions_max = 256;

  // Input bytes that a client may send ahead of execution. Two operations of
  // 16 MiB in flight keep the compute lane busy; twice that covers jitter.
  int64_t input_window_bytes = int64_t{64} << 20;
  // Result bytes kept until acknowledged; the same reasoning.
  int64_t result_budget_bytes = int64_t{64} << 20;
  // What forwards keep for backwards, in all steps of a session.
  int64_t saved_operand_budget_bytes = int64_t{4} << 30;

  // Bytes of one chunk, both ways. Large enough that the cost of a frame
  // vanishes, small enough that a control frame waits for little.
  int64_t chunk_bytes_max = int64_t{1} << 20;
  // A chunk of at most so many new bytes is copied at once; another thread that
  // copies a longer one is worth being woken for it.
  int64_t copied_at_once_bytes_max = int64_t{64} << 10;
  // Tensors of one unary call, below gRPC's default message limit of 4 MiB.
  int64_t unary_tensor_bytes_max = int64_t{2} << 20;
  // Bytes of one tensor of an operation: one that no host could hold is
  // refused before anything is allocated for it.
  int64_t tensor_bytes_max = int64_t{1} << 40;

  // How far the ids of operations may run ahead of execution; also how many
  // results without bytes may wait for an acknowledgement.
  int operations_ahead_max = 4096;
  // Pieces in which input bytes may lie before they are whole. Transports cut
  // chunks into slices of some KiB, so the window comes in fewer; it bounds what
  // bytes sent one by one out of order would cost.
  int input_pieces_max = 1 << 14;
  int open_steps_max = 64;
  int handles_max = 1 << 16;
  int handles_per_release_max = 4096;
  int tensor_dimensions_max = 8;
  int name_bytes_max = 1024;  // of a model or layer in a frame

  // Without a frame or heartbeat.
  absl::Duration timeout = absl::Minutes(10);
  // Without progress of the operation that others wait for.
  absl::Duration gap_timeout = absl::Seconds(30);
};

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_SESSION_SESSION_LIMITS_H_
