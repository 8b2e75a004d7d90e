#include "tests/sim/sim_trainer.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/numeric/bfloat16.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace planewise {
namespace {

v1::TensorSpec Spec(DType dtype, int64_t rows, int64_t columns) {
  v1::TensorSpec spec;
  spec.set_data_type(dtype == DType::kF32 ? v1::DATA_TYPE_F32 : v1::DATA_TYPE_BF16);
  spec.add_shape(rows);
  spec.add_shape(columns);
  return spec;
}

size_t Bytes(DType dtype, int64_t elements) {
  return static_cast<size_t>(*SizeBytes(dtype, elements));
}

v1::BackwardOverride ToApi(BackwardOverride value) {
  switch (value) {
    case BackwardOverride::kNone: return v1::BACKWARD_OVERRIDE_NONE;
    case BackwardOverride::kHighPrecision: return v1::BACKWARD_OVERRIDE_HIGH_PRECISION;
    case BackwardOverride::kDequantized: return v1::BACKWARD_OVERRIDE_DEQUANTIZED;
  }
  return v1::BACKWARD_OVERRIDE_UNSPECIFIED;
}

}  // namespace

SimTrainer::SimTrainer(SimDaemon& daemon, SimOracle& oracle, const VersionHistory& history,
                       SimRandom& random, TrainerOptions options)
    : daemon_(daemon),
      oracle_(oracle),
      history_(history),
      random_(random),
      options_(std::move(options)) {
  for (const HostedLayer& layer : history_.begin()->second->layers) layers_.push_back(layer.name);
  BeginSession();
}

SimTrainer::~SimTrainer() = default;

void SimTrainer::BeginSession() {
  ++sessions_begun_;
  link_ = nullptr;
  SessionClient::Options client;
  client.client_name = "sim";
  client.client_api_version = "1.0";
  client.result_window_bytes = 1024;
  client.silence_timeout = absl::Seconds(5);
  client_ = std::make_unique<SessionClient>(client, [this] { return random_.Fraction(); });
  pending_.clear();
  saved_.clear();
  consumed_.clear();
  version_of_step_.clear();
  next_handle_ = 1;
}

void SimTrainer::Vanish() {
  vanished_ = true;
  link_ = nullptr;
  saved_.clear();
  pending_.clear();
}

absl::Time SimTrainer::next_deadline() const {
  return vanished_ ? absl::InfiniteFuture() : client_->next_deadline();
}

bool SimTrainer::Step() {
  if (vanished_) return false;
  if (Drive()) return true;
  if (random_.OneIn(3) && SubmitSomething()) return true;
  if (link_ != nullptr && link_->Step()) return true;
  return SubmitSomething();
}

// What a driver of the client logic does after every event.
bool SimTrainer::Drive() {
  const absl::Time now = daemon_.clock().Now();
  client_->OnTimer(now);
  bool progress = false;
  if (client_->wants_stream_dropped() && link_ != nullptr) {
    link_->Break();
    client_->OnStreamBroken(now, absl::CancelledError("dropped by the client"));
    progress = true;
  }
  if (link_ != nullptr && link_->broken()) link_ = nullptr;
  if (link_ == nullptr && client_->WantsStream(now)) {
    link_ = std::make_unique<SimLink>(daemon_.sessions(), *client_, daemon_.clock(), random_,
                                      options_.faults, FrameJudge());
    progress = true;
  }
  for (const SessionClient::Completion& completion : client_->TakeCompletions()) {
    OnCompletion(completion);
    progress = true;
  }
  if (client_->ended() && !closed_ && !finishing_) {
    BeginSession();
    progress = true;
  }
  return progress;
}

bool SimTrainer::SubmitSomething() {
  if (client_->ended()) {
    closed_ = closed_ || finishing_;
    return false;
  }
  if (finishing_) {
    if (!pending_.empty() || closed_) return false;
    closed_ = true;
    client_->Close(daemon_.clock().Now());
    return true;
  }
  if (static_cast<int64_t>(pending_.size()) >= options_.operations_in_flight_max) return false;
  const int64_t choice = random_.Below(16);
  if (choice < 7) {
    SubmitForward();
  } else if (choice < 12) {
    if (saved_.empty()) return false;
    SubmitBackward(/*resent=*/choice == 11);
  } else if (choice == 12) {
    if (saved_.empty()) return false;
    SubmitRelease();
  } else if (choice == 13) {
    if (consumed_.empty()) return false;
    SubmitConsumedHandle();
  } else if (choice == 14) {
    SubmitEndStep();
  } else {
    // An exception between forward and backward: the operand is forgotten.
    if (!saved_.empty()) saved_.pop_front();
  }
  return true;
}

std::string SimTrainer::RandomBytes(DType dtype, int64_t elements) {
  std::string bytes(Bytes(dtype, elements), '\0');
  for (int64_t i = 0; i < elements; ++i) {
    const auto value = static_cast<float>(random_.Fraction() * 2 - 1);
    if (dtype == DType::kF32) {
      std::memcpy(bytes.data() + i * 4, &value, 4);
    } else {
      const BFloat16 rounded = BFloat16::FromFloat(value);
      std::memcpy(bytes.data() + i * 2, &rounded, 2);
    }
  }
  return bytes;
}

void SimTrainer::SubmitForward() {
  const std::string& name = layers_[random_.Below(static_cast<int64_t>(layers_.size()))];
  const MatrixShape shape = history_.begin()->second->FindLayer(name)->weight->shape;
  const DType dtype = random_.OneIn(4) ? DType::kF32 : DType::kBF16;
  Work work;
  work.kind = Kind::kForward;
  work.forward.layer = name;
  work.forward.step = step_;
  OracleCall& call = work.forward.call;
  call.activation = dtype;
  call.tokens = random_.Below(options_.tokens_max + 1);
  call.mode.save_for_backward = !random_.OneIn(3);
  call.mode.weight_gradient = call.mode.save_for_backward && random_.OneIn(2);
  work.forward.x = RandomBytes(dtype, call.tokens * shape.in);
  work.inputs = {work.forward.x};
  work.outputs = {std::string(Bytes(dtype, call.tokens * shape.out), '\0')};
  v1::Forward& forward = *work.operation.mutable_forward();
  forward.set_model(options_.model);
  forward.set_layer(name);
  forward.set_step(step_);
  *forward.mutable_input() = Spec(dtype, call.tokens, shape.in);
  forward.set_save_for_backward(call.mode.save_for_backward);
  forward.set_weight_gradient(call.mode.weight_gradient);
  Submit(std::move(work));
}

void SimTrainer::SubmitBackward(bool resent) {
  const auto chosen = saved_.begin() + random_.Below(static_cast<int64_t>(saved_.size()));
  Work work;
  work.kind = Kind::kBackward;
  work.forward = *chosen;
  if (!resent) saved_.erase(chosen);
  const OracleCall& call = work.forward.call;
  const auto [out, in] = call.layer->weight->shape;
  work.wanted.input = true;
  work.wanted.weight = call.mode.weight_gradient && random_.OneIn(2);
  work.wanted.bias = call.layer->bias != nullptr && random_.OneIn(2);
  v1::Backward& backward = *work.operation.mutable_backward();
  if (resent) {
    v1::ResentInput& input = *backward.mutable_input();
    input.set_model(options_.model);
    input.set_layer(work.forward.layer);
    input.set_version(work.forward.version->version.value());
    input.set_step(work.forward.step);
    input.set_backward_override(ToApi(call.mode.recipe.backward_override));
    *input.mutable_input() = Spec(call.activation, call.tokens, in);
    work.inputs.push_back(work.forward.x);
    work.forward.handle = 0;
  } else {
    backward.set_handle(work.forward.handle);
  }
  work.inputs.push_back(RandomBytes(call.activation, call.tokens * out));
  *backward.mutable_output_gradient() = Spec(call.activation, call.tokens, out);
  backward.set_input_gradient(true);
  backward.set_weight_gradient(work.wanted.weight);
  backward.set_bias_gradient(work.wanted.bias);
  work.outputs.emplace_back(Bytes(call.activation, call.tokens * in), '\0');
  if (work.wanted.weight) work.outputs.emplace_back(Bytes(DType::kF32, out * in), '\0');
  if (work.wanted.bias) work.outputs.emplace_back(Bytes(DType::kF32, out), '\0');
  Submit(std::move(work));
}

void SimTrainer::SubmitRelease() {
  Work work;
  work.kind = Kind::kRelease;
  v1::ReleaseOperands& release = *work.operation.mutable_release();
  while (!saved_.empty() && release.handles_size() < 3) {
    release.add_handles(saved_.front().handle);
    saved_.pop_front();
  }
  if (!consumed_.empty()) release.add_handles(consumed_.back());
  Submit(std::move(work));
}

// A backward with a handle that was consumed: never a wrong gradient.
void SimTrainer::SubmitConsumedHandle() {
  Work work;
  work.kind = Kind::kBackward;
  work.must_be_evicted = true;
  v1::Backward& backward = *work.operation.mutable_backward();
  backward.set_handle(consumed_[random_.Below(static_cast<int64_t>(consumed_.size()))]);
  backward.set_input_gradient(true);
  *backward.mutable_output_gradient() = Spec(DType::kBF16, 1, 64);
  work.inputs = {RandomBytes(DType::kBF16, 64)};
  work.outputs = {std::string(Bytes(DType::kBF16, 64), '\0')};
  Submit(std::move(work));
}

void SimTrainer::SubmitEndStep() {
  Work work;
  work.kind = Kind::kEndStep;
  work.operation.mutable_end_step()->set_step(step_);
  ++step_;
  Submit(std::move(work));
}

void SimTrainer::Submit(Work work) {
  // The work stays where it is until its completion, and so do its bytes.
  auto place = std::make_unique<Work>(std::move(work));
  std::vector<absl::string_view> inputs(place->inputs.begin(), place->inputs.end());
  std::vector<absl::Span<char>> outputs;
  for (std::string& output : place->outputs) outputs.push_back(absl::MakeSpan(output));
  const absl::StatusOr<OperationId> id =
      client_->Submit(daemon_.clock().Now(), place->operation, std::move(inputs),
                      std::move(outputs));
  ASSERT_TRUE(id.ok()) << id.status();
  pending_.emplace(*id, std::move(place));
}

void SimTrainer::OnCompletion(const SessionClient::Completion& completion) {
  const auto found = pending_.find(completion.id);
  ASSERT_NE(found, pending_.end()) << "operation " << completion.id << " completed twice";
  const std::unique_ptr<Work> work = std::move(found->second);
  pending_.erase(found);
  if (!completion.result.ok()) return CheckFailure(*work, completion.result.status());
  ASSERT_FALSE(work->must_be_evicted) << "a consumed handle gave a gradient";
  if (work->kind == Kind::kForward) CheckForward(*work, completion.result->forward());
  if (work->kind == Kind::kBackward) CheckBackward(*work, completion.result->backward());
}

void SimTrainer::CheckForward(Work& work, const v1::ForwardResult& result) {
  ++forwards_done_;
  const auto version = history_.find(result.version());
  ASSERT_NE(version, history_.end()) << "version " << result.version() << " was never published";
  SavedForward& forward = work.forward;
  const uint64_t pinned =
      version_of_step_.try_emplace(forward.step, result.version()).first->second;
  EXPECT_EQ(result.version(), pinned) << "step " << forward.step << " mixes versions";
  forward.version = version->second;
  forward.call.layer = forward.version->FindLayer(forward.layer);
  forward.call.mode.recipe = forward.version->recipe;
  EXPECT_TRUE(work.outputs[0] == oracle_.Forward(forward.call, forward.x))
      << "forward of " << forward.layer << " differs from the direct computation";
  if (!forward.call.mode.save_for_backward) {
    EXPECT_EQ(result.handle(), 0u);
    return;
  }
  EXPECT_EQ(result.handle(), next_handle_++) << "an operation ran twice, or not at all";
  forward.handle = result.handle();
  saved_.push_back(forward);
}

void SimTrainer::CheckBackward(const Work& work, const v1::BackwardResult& result) {
  ++backwards_done_;
  const SavedForward& forward = work.forward;
  EXPECT_EQ(result.version(), forward.version->version.value());
  OracleCall call = forward.call;
  // X sent again is saved for exactly what is wanted.
  if (forward.handle == 0) call.mode.weight_gradient = work.wanted.weight;
  EXPECT_TRUE(work.outputs == oracle_.Backward(call, work.wanted, forward.x, work.inputs.back()))
      << "backward of " << forward.layer << " differs from the direct computation";
  if (forward.handle != 0) consumed_.push_back(forward.handle);
}

// Every failure must have a cause in the simulation.
void SimTrainer::CheckFailure(const Work& work, const absl::Status& status) {
  ++failures_;
  const std::optional<Reason> reason = ReasonOf(status);
  ASSERT_TRUE(reason.has_value()) << status;
  if (client_->ended() || finishing_) return;  // the session's end, not the operation's
  std::set<Reason> allowed = {Reason::kLeaseRevoked};
  if (work.kind == Kind::kBackward) allowed.insert(Reason::kOperandEvicted);
  if (work.kind == Kind::kBackward && work.forward.handle == 0) allowed.insert(Reason::kNotFound);
  if (options_.faults.drop > 0) allowed.insert(Reason::kOperationGap);
  EXPECT_TRUE(allowed.contains(*reason)) << status;
  if (work.must_be_evicted && *reason != Reason::kOperationGap) {
    EXPECT_EQ(*reason, Reason::kOperandEvicted) << status;
  }
}

}  // namespace planewise
