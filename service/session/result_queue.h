#ifndef PLANEWISE_SERVICE_SESSION_RESULT_QUEUE_H_
#define PLANEWISE_SERVICE_SESSION_RESULT_QUEUE_H_
// Results of executed operations, kept until the client acknowledges them and
// sent as far as the client takes them.
//
// Not here: making results (operation_runner.h), other frames (session.h).

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "core/tensor/host_buffer.h"
#include "planewise/v1/session.pb.h"
#include "service/session/outgoing_frame.h"
#include "service/session/result_window.h"
#include "service/session/session_limits.h"

namespace planewise {

struct StoredResult {
  v1::Operation operation;       // id only if its header never came
  v1::OperationResult header;
  std::vector<HostBuffer> tensors;  // the result's bytes, end to end
};

// One thread.
class ResultQueue {
 public:
  // `limits` outlives it.
  explicit ResultQueue(const SessionLimits& limits);

  // May an operation with that much result be executed?
  bool HasRoomFor(int64_t result_bytes) const;

  // The result of the next operation in order. Sets the header's id, position
  // and size.
  void Add(v1::Operation operation, v1::OperationResult header, std::vector<HostBuffer> tensors);

  // Every operation up to this one has a result, or had one.
  uint64_t executed_through() const { return forgotten_ + results_.size(); }
  // No result waits for its acknowledgement.
  bool empty() const { return results_.empty(); }
  // nullptr if the operation is not executed, or its result was acknowledged.
  std::shared_ptr<const StoredResult> Find(uint64_t id) const;

  // Forgets results through `id`. INVALID_ARGUMENT / PROTOCOL_VIOLATION for
  // operations that are not executed yet.
  absl::Status Acknowledge(uint64_t through_operation);
  void RaiseLimit(uint64_t result_limit) { window_.RaiseLimit(result_limit); }

  // A new stream: everything that is held is sent again.
  void Restart();
  // Sends the result of `id` again, if it is held.
  void Repeat(uint64_t id);

  std::optional<OutgoingFrame> NextHeader();
  std::optional<OutgoingFrame> NextChunk();

 private:
  const SessionLimits& limits_;
  ResultWindow window_;
  uint64_t forgotten_ = 0;  // results through this id
  std::deque<std::shared_ptr<const StoredResult>> results_;
  uint64_t next_header_ = 1;     // id of the next header to send
  std::set<uint64_t> repeated_;  // headers to send again
};

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_SESSION_RESULT_QUEUE_H_
