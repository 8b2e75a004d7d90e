#include "clients/cpp/fake_session.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "clients/cpp/operation_tensors.h"
#include "clients/cpp/tensor_spec.h"
#include "core/base/error.h"
#include "proto/status/status_codec.h"

namespace planewise {
namespace {

constexpr absl::string_view kToken = "token of the fake session";

absl::Status BreaksProtocol(absl::string_view what) {
  return Error(Reason::kProtocolViolation, std::string(what));
}

v1::TensorSpec F32(std::initializer_list<int64_t> shape) {
  v1::TensorSpec spec;
  for (const int64_t dimension : shape) spec.add_shape(dimension);
  spec.set_data_type(v1::DATA_TYPE_F32);
  return spec;
}

void FillResult(const v1::Operation& operation, v1::OperationResult& result) {
  switch (operation.kind_case()) {
    case v1::Operation::kForward: {
      v1::ForwardResult& forward = *result.mutable_forward();
      *forward.mutable_output() = operation.forward().input();
      if (operation.forward().save_for_backward()) forward.set_handle(1000 + operation.id());
      forward.set_version(1);
      forward.set_gemm_path("expanded");
      return;
    }
    case v1::Operation::kBackward: {
      const v1::Backward& request = operation.backward();
      const v1::TensorSpec& gradient = request.output_gradient();
      const int64_t width = gradient.shape(gradient.shape_size() - 1);
      v1::BackwardResult& backward = *result.mutable_backward();
      if (request.input_gradient()) *backward.mutable_input_gradient() = gradient;
      if (request.weight_gradient()) *backward.mutable_weight_gradient() = F32({width, width});
      if (request.bias_gradient()) *backward.mutable_bias_gradient() = F32({width});
      backward.set_version(1);
      return;
    }
    case v1::Operation::kEndStep:
      result.mutable_end_step();
      return;
    default:
      result.mutable_release();
      return;
  }
}

}  // namespace

std::string FakeSession::ResultBytes(const v1::Operation& operation, absl::string_view inputs) {
  v1::OperationResult result;
  FillResult(operation, result);
  int64_t size = 0;
  for (const v1::TensorSpec& tensor : ResultTensors(result)) size += *SizeBytes(tensor);
  std::string bytes;
  for (int64_t i = 0; i < size; ++i) {
    const char input = inputs.empty() ? 0 : inputs[i % inputs.size()];
    bytes.push_back(static_cast<char>(input + i / 251 + operation.id()));
  }
  return bytes;
}

void FakeSession::OnStream() { stream_open_ = false; }

absl::Status FakeSession::OnFrame(const v1::ClientFrame& frame, absl::string_view data) {
  if (closed_) return Error(Reason::kSessionExpired, "the session was closed");
  if (frame.has_open() == stream_open_) {
    return BreaksProtocol("`open` is the first frame of a stream and no other");
  }
  switch (frame.body_case()) {
    case v1::ClientFrame::kOpen:
      return OnOpen(frame.open());
    case v1::ClientFrame::kOperation:
      return OnOperation(frame.operation());
    case v1::ClientFrame::kChunk:
      return OnChunk(frame.chunk().position(), data);
    case v1::ClientFrame::kAcknowledge:
      return OnAcknowledge(frame.acknowledge());
    case v1::ClientFrame::kClose:
      closed_ = ended_due_ = true;
      return absl::OkStatus();
    default:
      return absl::OkStatus();
  }
}

absl::Status FakeSession::OnOpen(const v1::OpenSession& open) {
  resumed_ = open.session_id() != 0;
  if (resumed_ &&
      (!exists_ || open.session_id() != options_.session_id || open.resume_token() != kToken)) {
    return Error(Reason::kSessionExpired, "no such session");
  }
  if (!resumed_ && executed_through_ > 0) {
    return BreaksProtocol("a second session where the test expects a resume");
  }
  exists_ = true;
  stream_open_ = true;
  opened_due_ = true;
  operations_.clear();
  inputs_.resize(inputs_used_);
  result_limit_ = std::max(result_limit_, open.result_limit());
  send_id_ = acknowledged_through_ + 1;
  header_sent_ = false;
  return absl::OkStatus();
}

absl::Status FakeSession::OnOperation(const v1::Operation& operation) {
  if (operation.id() <= acknowledged_through_) return absl::OkStatus();
  if (operation.id() <= executed_through_) {
    send_id_ = std::min(send_id_, operation.id());
    header_sent_ = false;
    return absl::OkStatus();
  }
  const auto [known, is_new] = operations_.emplace(operation.id(), operation);
  if (!is_new && known->second.SerializeAsString() != operation.SerializeAsString()) {
    return BreaksProtocol(absl::StrCat("operation ", operation.id(), " contradicts itself"));
  }
  ExecuteWhatIsComplete();
  return absl::OkStatus();
}

absl::Status FakeSession::OnChunk(uint64_t position, absl::string_view data) {
  if (static_cast<int64_t>(data.size()) > options_.chunk_bytes_max) {
    return BreaksProtocol(absl::StrCat("a chunk of ", data.size(), " bytes"));
  }
  if (position + data.size() > input_limit_sent_) {
    return BreaksProtocol(
        absl::StrCat("a chunk at ", position, " crosses the limit ", input_limit_sent_));
  }
  if (position > inputs_.size()) return absl::OkStatus();  // Bytes between were lost.
  const uint64_t known = inputs_.size() - position;
  if (known < data.size()) inputs_.append(data.data() + known, data.size() - known);
  ExecuteWhatIsComplete();
  return absl::OkStatus();
}

absl::Status FakeSession::OnAcknowledge(const v1::Acknowledge& acknowledge) {
  if (acknowledge.through_operation() > executed_through_) {
    return BreaksProtocol("an acknowledgement of what was not executed");
  }
  acknowledged_through_ = std::max(acknowledged_through_, acknowledge.through_operation());
  results_.erase(results_.begin(), results_.upper_bound(acknowledged_through_));
  result_limit_ = std::max(result_limit_, acknowledge.result_limit());
  if (send_id_ <= acknowledged_through_) {
    send_id_ = acknowledged_through_ + 1;
    header_sent_ = false;
  }
  return absl::OkStatus();
}

std::optional<uint64_t> FakeSession::InputEnd(const v1::Operation& operation) const {
  uint64_t end = operation.input_position();
  for (const v1::TensorSpec& input : InputTensors(operation)) {
    const absl::StatusOr<int64_t> size = SizeBytes(input);
    if (!size.ok()) return std::nullopt;
    end += *size;
  }
  return end;
}

void FakeSession::ExecuteWhatIsComplete() {
  for (auto next = operations_.find(executed_through_ + 1);
       next != operations_.end() && next->first == executed_through_ + 1;
       next = operations_.erase(next)) {
    const std::optional<uint64_t> input_end = InputEnd(next->second);
    if (!input_end) return;
    // A refusal needs no inputs, and what did not come of them never will.
    if (failures_.count(next->first) > 0 && inputs_.size() < *input_end) inputs_.resize(*input_end);
    if (inputs_.size() < *input_end) return;
    results_[next->first] = Execute(next->second);
    executed_through_ = next->first;
    inputs_used_ = *input_end;
  }
}

FakeSession::Result FakeSession::Execute(const v1::Operation& operation) {
  Result result;
  result.header.set_id(operation.id());
  result.header.set_result_position(results_end_);
  const auto failure = failures_.find(operation.id());
  if (failure != failures_.end()) {
    *result.header.mutable_status() = StatusToProto(failure->second);
    return result;
  }
  FillResult(operation, result.header);
  const uint64_t begin = operation.input_position();
  result.bytes = ResultBytes(
      operation, absl::string_view(inputs_).substr(begin, *InputEnd(operation) - begin));
  result.header.set_result_bytes(result.bytes.size());
  results_end_ += result.bytes.size();
  return result;
}

uint64_t FakeSession::InputLimit() const {
  uint64_t limit = std::max(input_limit_sent_, inputs_used_ + options_.input_window_bytes);
  // An operation larger than the window is admitted once it is next in line.
  const auto next = operations_.find(executed_through_ + 1);
  if (next != operations_.end()) limit = std::max(limit, InputEnd(next->second).value_or(0));
  return limit;
}

std::optional<FakeSession::Frame> FakeSession::NextFrame() {
  if (!stream_open_) return std::nullopt;
  Frame frame;
  if (opened_due_) {
    opened_due_ = false;
    input_limit_sent_ = InputLimit();
    v1::SessionOpened& opened = *frame.header.mutable_opened();
    opened.set_session_id(options_.session_id);
    opened.set_resume_token(std::string(kToken));
    opened.set_input_limit(input_limit_sent_);
    opened.set_chunk_bytes_max(options_.chunk_bytes_max);
    opened.set_timeout_ms(options_.timeout_ms);
    opened.set_executed_through(executed_through_);
    opened.set_resumed(resumed_);
    return frame;
  }
  if (ended_due_) {
    ended_due_ = false;
    frame.header.mutable_ended()->mutable_status();
    return frame;
  }
  if (InputLimit() > input_limit_sent_) {
    input_limit_sent_ = InputLimit();
    frame.header.mutable_input_window()->set_input_limit(input_limit_sent_);
    return frame;
  }
  for (; results_.count(send_id_) > 0; ++send_id_, header_sent_ = false) {
    const Result& result = results_.at(send_id_);
    if (!header_sent_) {
      header_sent_ = true;
      sent_bytes_ = 0;
      *frame.header.mutable_result() = result.header;
      return frame;
    }
    const uint64_t position = result.header.result_position() + sent_bytes_;
    if (sent_bytes_ < result.bytes.size()) {
      if (position >= result_limit_) return std::nullopt;
      frame.data = result.bytes.substr(
          sent_bytes_, std::min<uint64_t>(result_limit_ - position, options_.chunk_bytes_max));
      frame.header.mutable_chunk()->set_position(position);
      sent_bytes_ += frame.data.size();
      return frame;
    }
  }
  return std::nullopt;
}

}  // namespace planewise
