#include "tests/sim/scripted_client.h"

#include <optional>
#include <utility>

#include "tests/testing/integer_model.h"

namespace planewise {
namespace {

SessionLimits ScriptedLimits() {
  SessionLimits limits;
  limits.input_window_bytes = 256;
  limits.result_budget_bytes = 256;
  limits.chunk_bytes_max = 48;
  limits.copied_at_once_bytes_max = 16;
  return limits;
}

SessionClient::Options ClientOptions() {
  SessionClient::Options options;
  options.client_name = "script";
  options.client_api_version = "1.0";
  options.result_window_bytes = 128;
  options.silence_timeout = absl::Seconds(5);
  return options;
}

v1::TensorSpec Spec(int64_t columns) {
  v1::TensorSpec spec;
  spec.set_data_type(v1::DATA_TYPE_F32);
  spec.add_shape(ScriptedClient::kTokens);
  spec.add_shape(columns);
  return spec;
}

}  // namespace

ScriptedClient::ScriptedClient(FrameJudge judge)
    : version_(MakeIntegerVersion(*budget_, "m", 1, {{"l", kOut, kIn}})),
      weights_bytes_(budget_->used_bytes()),
      table_({&executor_, &clock_, &runner_, &models_, &linear_, budget_}, ScriptedLimits(),
             [this] { return random_.Bits(); }),
      client_(ClientOptions(), [this] { return random_.Fraction(); }),
      judge_(std::move(judge)) {
  models_.Publish(version_);
}

ScriptedClient::~ScriptedClient() = default;

absl::StatusOr<ScriptedClient::Answer> ScriptedClient::Forward(const std::vector<float>& x,
                                                               bool save, uint64_t step) {
  v1::Operation operation;
  v1::Forward& forward = *operation.mutable_forward();
  forward.set_model("m");
  forward.set_layer("l");
  forward.set_step(step);
  *forward.mutable_input() = Spec(kIn);
  forward.set_save_for_backward(save);
  forward.set_weight_gradient(save);
  return Run(std::move(operation), {x}, {kTokens * kOut});
}

absl::StatusOr<ScriptedClient::Answer> ScriptedClient::Backward(uint64_t handle,
                                                                const std::vector<float>& dy) {
  v1::Operation operation;
  v1::Backward& backward = *operation.mutable_backward();
  backward.set_handle(handle);
  *backward.mutable_output_gradient() = Spec(kOut);
  backward.set_input_gradient(true);
  backward.set_weight_gradient(true);
  backward.set_bias_gradient(true);
  return Run(std::move(operation), {dy}, {kTokens * kIn, kOut * kIn, kOut});
}

absl::StatusOr<ScriptedClient::Answer> ScriptedClient::Release(
    const std::vector<uint64_t>& handles) {
  v1::Operation operation;
  operation.mutable_release()->mutable_handles()->Add(handles.begin(), handles.end());
  return Run(std::move(operation), {}, {});
}

absl::StatusOr<ScriptedClient::Answer> ScriptedClient::EndStep(uint64_t step) {
  v1::Operation operation;
  operation.mutable_end_step()->set_step(step);
  return Run(std::move(operation), {}, {});
}

absl::StatusOr<ScriptedClient::Answer> ScriptedClient::Run(
    v1::Operation operation, std::vector<std::vector<float>> inputs,
    std::vector<size_t> output_elements) {
  std::vector<absl::string_view> input_bytes;
  for (const std::vector<float>& input : inputs) {
    input_bytes.emplace_back(reinterpret_cast<const char*>(input.data()),
                             input.size() * sizeof(float));
  }
  Answer answer;
  for (const size_t elements : output_elements) answer.tensors.emplace_back(elements);
  std::vector<absl::Span<char>> outputs;
  for (std::vector<float>& tensor : answer.tensors) {
    outputs.emplace_back(reinterpret_cast<char*>(tensor.data()), tensor.size() * sizeof(float));
  }
  const auto id = client_.Submit(clock_.Now(), std::move(operation), std::move(input_bytes),
                                 std::move(outputs));
  if (!id.ok()) return id.status();
  while (true) {
    for (const SessionClient::Completion& completion : client_.TakeCompletions()) {
      if (!completion.result.ok()) return completion.result.status();
      answer.result = *completion.result;
      return answer;
    }
    Drive();
  }
}

void ScriptedClient::Close() {
  client_.Close(clock_.Now());
  while (!client_.ended()) Drive();
  link_ = nullptr;
}

// One step of the stream and all that follows from it, or time moves on.
void ScriptedClient::Drive() {
  runner_.RunUntilIdle();
  client_.OnTimer(clock_.Now());
  if (link_ != nullptr && (client_.wants_stream_dropped() || std::exchange(break_next_, false))) {
    link_->Break();
    client_.OnStreamBroken(clock_.Now(), absl::UnavailableError("broken by the script"));
  }
  if (link_ != nullptr && link_->broken()) link_ = nullptr;
  if (link_ == nullptr && client_.WantsStream(clock_.Now())) {
    link_ = std::make_unique<SimLink>(table_, client_, clock_, random_, LinkFaults(), judge_);
  }
  if (link_ != nullptr && link_->Step()) return;
  executor_.AdvanceTo(std::max(std::min(client_.next_deadline(), executor_.next_timer()),
                               clock_.Now() + absl::Milliseconds(1)));
}

}  // namespace planewise
