#ifndef PLANEWISE_SERVICE_SESSION_OPERATION_ASSEMBLY_H_
#define PLANEWISE_SERVICE_SESSION_OPERATION_ASSEMBLY_H_
// Puts operations together from headers and chunks that come in any order, and
// hands them out in the order of their ids. Bytes are copied once, from the
// wire's memory into the tensor they belong to; who copies, and on which thread,
// is the caller's choice (chunk_copy.h). Only bytes that come before their tensor
// can be allocated are copied twice, both times at once.
//
// Invariants, cited by tests:
//  1. Bytes held are at most the input window and the front operation, and while a
//     copy for a dropped operation runs, that operation.
//  2. A byte is written once, whatever comes twice.
//  3. Operations lie in the byte string in the order of their ids, without
//     overlap.
//
// Not here: executing (operation_runner.h), results (result_queue.h), time.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/tensor/host_buffer.h"
#include "core/tensor/memory_budget.h"
#include "planewise/v1/session.pb.h"
#include "service/session/byte_ranges.h"
#include "service/session/chunk_copy.h"
#include "service/session/input_window.h"
#include "service/session/session_limits.h"

namespace planewise {

// One thread. The front is the operation whose id is next in line.
class OperationAssembly {
 public:
  // `owner` names the session in messages; `limits` outlives it.
  OperationAssembly(const SessionLimits& limits, std::shared_ptr<MemoryBudget> budget,
                    std::string owner);

  // The header of an operation that was not taken yet. An operation that is
  // malformed by itself, or does not fit the memory, is kept as one that fails.
  // INVALID_ARGUMENT / PROTOCOL_VIOLATION: it contradicts an earlier header or
  // overlaps another operation; LIMIT_EXCEEDED: its id is too far ahead.
  absl::Status AddOperation(const v1::Operation& operation);

  // Bytes from `position` on. The caller runs the copy and finishes it; until then
  // the operations that it belongs to are not complete. They may be dropped
  // meanwhile. INVALID_ARGUMENT / PROTOCOL_VIOLATION past the
  // input limit; LIMIT_EXCEEDED for too long a chunk, or bytes in too many
  // pieces before their headers; RESOURCE_EXHAUSTED if those do not fit memory.
  absl::StatusOr<ChunkCopy> AddChunk(uint64_t position,
                                     absl::Span<const absl::Span<const std::byte>> data);

  uint64_t next_id() const { return next_id_; }
  uint64_t input_limit() const { return window_.limit(); }

  // nullptr until its header has come.
  const v1::Operation* front() const;
  // Why the front fails, as far as its header and the memory can tell.
  absl::Status front_failure() const;
  bool front_complete() const;
  // Gives the front its own memory outside the window, so that those behind it
  // may come. To be called while nothing executes.
  void AdmitFront();
  // The tensors of the front, which is complete. The next operation is the
  // front then.
  std::vector<HostBuffer> TakeFront();
  // Drops the front, also one whose header is missing.
  void DropFront();

  // Is an operation complete behind a front whose bytes have not all come?
  bool waits_for_front() const;
  // Moves whenever bytes or the header of the front come.
  int64_t front_progress() const { return front_progress_; }
  // The highest id whose header has come; next_id() - 1 if none.
  uint64_t last_id() const;

  // Drops all that was not taken; the client begins again with the front.
  void Forget();

 private:
  struct Pending {
    v1::Operation operation;
    uint64_t begin = 0;
    uint64_t end = 0;
    std::vector<int64_t> tensor_bytes;
    absl::Status failure;  // why it fails without being executed
    std::shared_ptr<AssembledInputs> inputs;  // once it is admitted
    ByteRanges received;  // copied, or being copied

    bool arrived() const { return inputs != nullptr && received.total() == end - begin; }
    bool complete() const { return arrived() && inputs->open_copies == 0; }
  };
  // Bytes that no tensor can take yet.
  struct StagedPiece {
    std::shared_ptr<const HostBuffer> buffer;
    int64_t offset = 0;
    uint64_t end = 0;  // position
  };

  absl::Status CheckPlace(uint64_t id, const Pending& pending) const;
  absl::Status TooManyPieces() const;
  void Admit(Pending& pending);
  void AdmitWithinWindow();
  absl::Status AddPiece(uint64_t position, absl::Span<const std::byte> bytes, ChunkCopy& copy);
  void Receive(Pending& pending, uint64_t position, absl::Span<const std::byte> bytes,
               ChunkCopy& copy);
  absl::Status Stage(uint64_t position, absl::Span<const std::byte> bytes);
  void Unstage(Pending& pending);
  StagedPiece PartOf(const StagedPiece& staged, uint64_t begin, uint64_t from, uint64_t to) const;
  void DropStagedBefore(uint64_t position);
  // The operation that has `position` among its inputs, or nullptr.
  Pending* At(uint64_t position);

  const SessionLimits& limits_;
  const std::shared_ptr<MemoryBudget> budget_;
  const std::string owner_;
  InputWindow window_;
  uint64_t next_id_ = 1;
  uint64_t taken_end_ = 0;  // position: bytes before it are not needed
  int64_t front_progress_ = 0;
  std::map<uint64_t, Pending> pending_;        // by id
  std::map<uint64_t, uint64_t> id_by_begin_;   // of those with inputs
  std::map<uint64_t, StagedPiece> staged_;     // by position; disjoint
};

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_SESSION_OPERATION_ASSEMBLY_H_
