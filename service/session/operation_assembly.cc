#include "service/session/operation_assembly.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "google/protobuf/util/message_differencer.h"
#include "service/session/operation_inputs.h"
#include "service/session/session_error.h"

namespace planewise {

OperationAssembly::OperationAssembly(const SessionLimits& limits,
                                     std::shared_ptr<MemoryBudget> budget, std::string owner)
    : limits_(limits),
      budget_(std::move(budget)),
      owner_(std::move(owner)),
      window_(limits.input_window_bytes) {}

absl::Status OperationAssembly::AddOperation(const v1::Operation& operation) {
  const uint64_t id = operation.id();
  if (id - next_id_ >= static_cast<uint64_t>(limits_.operations_ahead_max)) {
    return AboveLimit(owner_,
                      absl::StrCat("operation ", id, " is ", id - next_id_,
                                   " ahead of execution; wait for results"),
                      "operations_ahead_max", limits_.operations_ahead_max);
  }
  if (const auto known = pending_.find(id); known != pending_.end()) {
    if (google::protobuf::util::MessageDifferencer::Equals(known->second.operation, operation)) {
      return absl::OkStatus();
    }
    return ProtocolViolation(owner_, absl::StrCat("operation ", id,
                                          " came before with another header; an id names one "
                                          "operation for ever"));
  }
  Pending pending;
  pending.operation = operation;
  pending.begin = pending.end = operation.input_position();
  const absl::StatusOr<std::vector<FlatTensor>> tensors = InputTensors(operation, limits_);
  pending.failure = tensors.status();
  if (tensors.ok()) {
    for (const FlatTensor& tensor : *tensors) {
      if (pending.end > std::numeric_limits<uint64_t>::max() - tensor.size_bytes) {
        return ProtocolViolation(owner_,
                                 absl::StrCat("operation ", id, ": its inputs end past 2^64"));
      }
      pending.end += tensor.size_bytes;
      pending.tensor_bytes.push_back(tensor.size_bytes);
    }
  }
  PW_RETURN_IF_ERROR(CheckPlace(id, pending));
  if (pending.end > pending.begin) id_by_begin_.emplace(pending.begin, id);
  Pending& added = pending_.emplace(id, std::move(pending)).first->second;
  if (id == next_id_) ++front_progress_;
  if (added.end <= window_.limit()) Admit(added);
  return absl::OkStatus();
}

// Invariant 3.
absl::Status OperationAssembly::CheckPlace(uint64_t id, const Pending& pending) const {
  const auto next = pending_.upper_bound(id);
  const uint64_t before =
      next == pending_.begin() ? taken_end_ : std::max(taken_end_, std::prev(next)->second.end);
  if (pending.begin < before || (next != pending_.end() && pending.end > next->second.begin)) {
    return ProtocolViolation(
        owner_, absl::StrCat("operation ", id, ": its inputs [", pending.begin, ", ", pending.end,
                             ") overlap another operation's"));
  }
  return absl::OkStatus();
}

// Allocates the tensors and moves to them what has come.
void OperationAssembly::Admit(Pending& pending) {
  if (pending.inputs != nullptr || !pending.failure.ok()) return;
  auto inputs = std::make_shared<AssembledInputs>();
  const std::string what =
      absl::StrCat(owner_, ": input of operation ", pending.operation.id());
  for (const int64_t size_bytes : pending.tensor_bytes) {
    absl::StatusOr<HostBuffer> tensor = HostBuffer::AllocateUninitialized(
        *budget_, MemoryUse::kTransport, size_bytes, what);
    if (!tensor.ok()) {
      pending.failure = tensor.status();
      return;
    }
    inputs->tensors.push_back(*std::move(tensor));
  }
  pending.inputs = std::move(inputs);
  Unstage(pending);
}

void OperationAssembly::AdmitWithinWindow() {
  for (auto& [id, pending] : pending_) {
    if (pending.end > window_.limit()) return;  // so do all behind it
    Admit(pending);
  }
}

absl::StatusOr<ChunkCopy> OperationAssembly::AddChunk(
    uint64_t position, absl::Span<const absl::Span<const std::byte>> data) {
  uint64_t size = 0;
  for (const absl::Span<const std::byte> piece : data) size += piece.size();
  if (size > static_cast<uint64_t>(limits_.chunk_bytes_max)) {
    return AboveLimit(owner_, absl::StrCat("a chunk of ", size, " bytes"), "chunk_bytes_max",
                      limits_.chunk_bytes_max);
  }
  if (position > window_.limit() || size > window_.limit() - position) {
    return ProtocolViolation(owner_,
                             absl::StrCat("a chunk of ", size, " bytes at position ", position,
                                          " crosses the input limit ", window_.limit()));
  }
  ChunkCopy copy;
  for (const absl::Span<const std::byte> piece : data) {
    const absl::Status status = AddPiece(position, piece, copy);
    if (!status.ok()) {
      // What counts as received already has to come.
      copy.Run();
      copy.Finish();
      return status;
    }
    position += piece.size();
  }
  return copy;
}

// Hands each part of `bytes` to the operation it belongs to.
absl::Status OperationAssembly::AddPiece(uint64_t position, absl::Span<const std::byte> bytes,
                                         ChunkCopy& copy) {
  if (position < taken_end_) {
    const uint64_t late = std::min<uint64_t>(bytes.size(), taken_end_ - position);
    bytes.remove_prefix(late);
    position += late;
  }
  while (!bytes.empty()) {
    Pending* const pending = At(position);
    const auto next = id_by_begin_.upper_bound(position);
    uint64_t stop = position + bytes.size();
    if (pending != nullptr) {
      stop = std::min(stop, pending->end);
    } else if (next != id_by_begin_.end()) {
      stop = std::min(stop, next->first);
    }
    const absl::Span<const std::byte> part = bytes.subspan(0, stop - position);
    if (pending == nullptr || (pending->inputs == nullptr && pending->failure.ok())) {
      PW_RETURN_IF_ERROR(Stage(position, part));
    } else {
      Receive(*pending, position, part, copy);
      if (pending->received.count() > limits_.input_pieces_max) return TooManyPieces();
    }
    bytes.remove_prefix(part.size());
    position = stop;
  }
  return absl::OkStatus();
}

OperationAssembly::Pending* OperationAssembly::At(uint64_t position) {
  auto found = id_by_begin_.upper_bound(position);
  if (found == id_by_begin_.begin()) return nullptr;
  Pending& pending = pending_.at(std::prev(found)->second);
  return position < pending.end ? &pending : nullptr;
}

// Adds to `copy` what did not come before (invariant 2).
void OperationAssembly::Receive(Pending& pending, uint64_t position,
                                absl::Span<const std::byte> bytes, ChunkCopy& copy) {
  if (pending.inputs == nullptr) return;
  for (const ByteRange& added : pending.received.Add({position, position + bytes.size()})) {
    copy.Add(pending.inputs, added.begin - pending.begin,
             bytes.subspan(added.begin - position, added.size()));
    if (pending.operation.id() == next_id_) ++front_progress_;
  }
}

// Keeps bytes that no tensor can take yet, but for those that are kept already.
absl::Status OperationAssembly::Stage(uint64_t position, absl::Span<const std::byte> bytes) {
  const uint64_t begin = position;
  const uint64_t end = position + bytes.size();
  while (position < end) {
    const auto next = staged_.upper_bound(position);
    if (next != staged_.begin() && std::prev(next)->second.end > position) {
      position = std::prev(next)->second.end;
      continue;
    }
    const uint64_t stop = next == staged_.end() ? end : std::min(end, next->first);
    if (staged_.size() >= static_cast<size_t>(limits_.input_pieces_max)) return TooManyPieces();
    PW_ASSIGN_OR_RETURN(
        HostBuffer buffer,
        HostBuffer::AllocateUninitialized(*budget_, MemoryUse::kTransport,
                                          static_cast<int64_t>(stop - position),
                                          absl::StrCat(owner_, ": early input bytes")));
    std::memcpy(buffer.data(), bytes.data() + (position - begin), stop - position);
    staged_.emplace(position,
                    StagedPiece{std::make_shared<const HostBuffer>(std::move(buffer)), 0, stop});
    position = stop;
  }
  return absl::OkStatus();
}

// Moves staged bytes of `pending` to its tensors.
void OperationAssembly::Unstage(Pending& pending) {
  auto piece = staged_.upper_bound(pending.begin);
  if (piece != staged_.begin() && std::prev(piece)->second.end > pending.begin) --piece;
  while (piece != staged_.end() && piece->first < pending.end) {
    const uint64_t begin = piece->first;
    const StagedPiece staged = std::move(piece->second);
    piece = staged_.erase(piece);
    const uint64_t from = std::max(begin, pending.begin);
    const uint64_t to = std::min(staged.end, pending.end);
    ChunkCopy copy;
    Receive(pending, from,
            staged.buffer->bytes().subspan(staged.offset + (from - begin), to - from), copy);
    copy.Run();
    copy.Finish();
    // What lies outside belongs to others whose headers have not come.
    if (begin < from) staged_.emplace(begin, PartOf(staged, begin, begin, from));
    if (to < staged.end) staged_.emplace(to, PartOf(staged, begin, to, staged.end));
  }
}

// [from, to) of a piece that begins at `begin`: a copy, so that the memory of the
// rest can go (invariant 1), or a share where there is no memory for a copy.
OperationAssembly::StagedPiece OperationAssembly::PartOf(const StagedPiece& staged,
                                                         uint64_t begin, uint64_t from,
                                                         uint64_t to) const {
  const auto offset = static_cast<int64_t>(staged.offset + (from - begin));
  absl::StatusOr<HostBuffer> copy = HostBuffer::AllocateUninitialized(
      *budget_, MemoryUse::kTransport, static_cast<int64_t>(to - from), owner_);
  if (!copy.ok()) return {staged.buffer, offset, to};
  std::memcpy(copy->data(), staged.buffer->data() + offset, to - from);
  return {std::make_shared<const HostBuffer>(*std::move(copy)), 0, to};
}

absl::Status OperationAssembly::TooManyPieces() const {
  return AboveLimit(owner_,
                    "input bytes lie in too many separate pieces; send them in order, after "
                    "their operation",
                    "input_pieces_max", limits_.input_pieces_max);
}

const v1::Operation* OperationAssembly::front() const {
  const auto front = pending_.find(next_id_);
  return front == pending_.end() ? nullptr : &front->second.operation;
}

absl::Status OperationAssembly::front_failure() const {
  const auto front = pending_.find(next_id_);
  return front == pending_.end() ? absl::OkStatus() : front->second.failure;
}

bool OperationAssembly::front_complete() const {
  const auto front = pending_.find(next_id_);
  return front != pending_.end() && front->second.complete();
}

void OperationAssembly::AdmitFront() {
  const auto front = pending_.find(next_id_);
  if (front == pending_.end()) return;
  DropStagedBefore(front->second.begin);
  Admit(front->second);
  // Invariant 1: from here on the front is the one operation outside the window.
  window_.MoveTo(front->second.end);
  AdmitWithinWindow();
}

std::vector<HostBuffer> OperationAssembly::TakeFront() {
  std::vector<HostBuffer> tensors = std::move(pending_.at(next_id_).inputs->tensors);
  DropFront();
  return tensors;
}

void OperationAssembly::DropFront() {
  if (const auto front = pending_.find(next_id_); front != pending_.end()) {
    taken_end_ = front->second.end;
    if (front->second.end > front->second.begin) id_by_begin_.erase(front->second.begin);
    pending_.erase(front);
  }
  ++next_id_;
  DropStagedBefore(taken_end_);
  window_.MoveTo(taken_end_);
  AdmitWithinWindow();
}

void OperationAssembly::DropStagedBefore(uint64_t position) {
  while (!staged_.empty() && staged_.begin()->second.end <= position) {
    staged_.erase(staged_.begin());
  }
}

bool OperationAssembly::waits_for_front() const {
  const auto front = pending_.find(next_id_);
  if (front != pending_.end() && (front->second.arrived() || !front->second.failure.ok())) {
    return false;
  }
  return std::any_of(pending_.upper_bound(next_id_), pending_.end(), [](const auto& entry) {
    return entry.second.complete() || !entry.second.failure.ok();
  });
}

uint64_t OperationAssembly::last_id() const {
  return pending_.empty() ? next_id_ - 1 : pending_.rbegin()->first;
}

void OperationAssembly::Forget() {
  pending_.clear();
  id_by_begin_.clear();
  staged_.clear();
}

}  // namespace planewise
