#include "service/session/result_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "service/session/session_error.h"

namespace planewise {
namespace {

uint64_t EndOf(const StoredResult& result) {
  return result.header.result_position() + static_cast<uint64_t>(result.header.result_bytes());
}

OutgoingFrame HeaderFrame(const StoredResult& result) {
  OutgoingFrame frame;
  *frame.header.mutable_result() = result.header;
  return frame;
}

}  // namespace

ResultQueue::ResultQueue(const SessionLimits& limits)
    : limits_(limits), window_(limits.result_budget_bytes) {}

bool ResultQueue::HasRoomFor(int64_t result_bytes) const {
  return window_.HasRoomFor(result_bytes) &&
         results_.size() < static_cast<size_t>(limits_.operations_ahead_max);
}

void ResultQueue::Add(v1::Operation operation, v1::OperationResult header,
                      std::vector<HostBuffer> tensors) {
  auto result = std::make_shared<StoredResult>();
  result->operation = std::move(operation);
  result->tensors = std::move(tensors);
  int64_t size_bytes = 0;
  for (const HostBuffer& tensor : result->tensors) size_bytes += tensor.size_bytes();
  result->header = std::move(header);
  result->header.set_id(executed_through() + 1);
  result->header.set_result_position(window_.Append(size_bytes));
  result->header.set_result_bytes(size_bytes);
  results_.push_back(std::move(result));
}

std::shared_ptr<const StoredResult> ResultQueue::Find(uint64_t id) const {
  if (id <= forgotten_ || id > executed_through()) return nullptr;
  return results_[id - forgotten_ - 1];
}

absl::Status ResultQueue::Acknowledge(uint64_t through_operation) {
  if (through_operation > executed_through()) {
    return ProtocolViolation(
        absl::StrCat("acknowledge ", through_operation),
        absl::StrCat("operations through ", executed_through(),
                     " are executed; acknowledge results that came"));
  }
  while (forgotten_ < through_operation) {
    window_.ReleaseTo(EndOf(*results_.front()));
    results_.pop_front();
    ++forgotten_;
  }
  next_header_ = std::max(next_header_, forgotten_ + 1);
  repeated_.erase(repeated_.begin(), repeated_.upper_bound(forgotten_));
  return absl::OkStatus();
}

void ResultQueue::Restart() {
  next_header_ = forgotten_ + 1;
  repeated_.clear();
  window_.Rewind(0);
}

void ResultQueue::Repeat(uint64_t id) {
  const std::shared_ptr<const StoredResult> result = Find(id);
  if (result == nullptr) return;
  if (id < next_header_) repeated_.insert(id);
  window_.Rewind(result->header.result_position());
}

std::optional<OutgoingFrame> ResultQueue::NextHeader() {
  if (!repeated_.empty()) {
    const uint64_t id = *repeated_.begin();
    repeated_.erase(repeated_.begin());
    return HeaderFrame(*Find(id));
  }
  if (next_header_ > executed_through()) return std::nullopt;
  return HeaderFrame(*Find(next_header_++));
}

std::optional<OutgoingFrame> ResultQueue::NextChunk() {
  const ByteRange range = window_.Sendable(limits_.chunk_bytes_max);
  if (range.size() == 0) return std::nullopt;
  // The first result that ends behind the position; earlier ones may be empty.
  const auto found = std::partition_point(
      results_.begin(), results_.end(),
      [&range](const auto& result) { return EndOf(*result) <= range.begin; });
  const std::shared_ptr<const StoredResult>& result = *found;
  uint64_t offset = range.begin - result->header.result_position();
  for (const HostBuffer& tensor : result->tensors) {
    const auto size = static_cast<uint64_t>(tensor.size_bytes());
    if (offset >= size) {
      offset -= size;
      continue;
    }
    OutgoingFrame frame;
    frame.header.mutable_chunk()->set_position(range.begin);
    frame.data = tensor.data() + offset;
    frame.size_bytes = std::min(range.size(), size - offset);
    frame.owner = result;
    window_.MarkSent(range.begin + frame.size_bytes);
    return frame;
  }
  return std::nullopt;
}

}  // namespace planewise
