#include "tests/testing/fake_models.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"

namespace planewise {
namespace {

int64_t RowBytes(MatrixView view) { return view.columns * FactsOf(view.dtype).bits / 8; }

// Rows of `from` cut or zero-filled to the width of `to`.
void CopyRows(MatrixView from, MutableMatrixView to) {
  const int64_t from_bytes = RowBytes(from);
  const int64_t to_bytes = RowBytes(to);
  const int64_t shared_bytes = std::min(from_bytes, to_bytes);
  auto* source = static_cast<const std::byte*>(from.data);
  auto* target = static_cast<std::byte*>(to.data);
  for (int64_t row = 0; row < to.rows; ++row) {
    std::memcpy(target + row * to_bytes, source + row * from_bytes, shared_bytes);
    std::memset(target + row * to_bytes + shared_bytes, 0, to_bytes - shared_bytes);
  }
}

}  // namespace

FakeModels::FakeModels(const Clock& clock) : leases_(std::make_shared<LeaseList>(clock)) {}

WeightVersion FakeModels::Publish(const std::string& model, const std::string& layer, int64_t out,
                                  int64_t in) {
  auto weight = std::make_shared<PrimaryWeight>();
  weight->name = layer + ".weight";
  weight->shape = {out, in};
  weight->format = Format::kMxfp8;
  auto version = std::make_shared<ModelVersion>();
  version->model = model;
  version->version = last_version_ = last_version_.Next();
  version->recipe = DefaultRecipe(Format::kMxfp8);
  version->trainable = true;
  HostedLayer hosted;
  hosted.name = layer;
  hosted.weight = std::move(weight);
  version->layers.push_back(std::move(hosted));
  models_[model][last_version_] = std::move(version);
  return last_version_;
}

absl::StatusOr<WeightLease> FakeModels::Lease(LeaseRequest request) {
  const auto model = models_.find(request.model);
  if (model == models_.end()) {
    return Error(Reason::kNotFound, absl::StrCat("model \"", request.model, "\": not hosted"))
        .With("model", request.model);
  }
  auto version = request.version == WeightVersion() ? std::prev(model->second.end())
                                                    : model->second.find(request.version);
  if (version == model->second.end()) {
    return Error(Reason::kNotFound, absl::StrCat("model \"", request.model, "\": no version ",
                                                 request.version.value()))
        .With("model", request.model);
  }
  LeaseRecord record;
  record.version = version->second;
  record.use = request.use;
  record.holder = std::move(request.holder);
  record.on_revoked = std::move(request.on_revoked);
  return leases_->Add(std::move(record));
}

absl::StatusOr<LinearForwardPlan> CopyingCompute::PlanForward(absl::string_view,
                                                              const PrimaryWeight& weight,
                                                              const LinearMode& mode,
                                                              int64_t tokens,
                                                              DType activation) const {
  LinearForwardPlan plan;
  plan.mode = mode;
  plan.tokens = tokens;
  plan.activation = activation;
  if (mode.save_for_backward) {
    plan.saved_bytes = tokens * weight.shape.in * FactsOf(activation).bits / 8;
  }
  return plan;
}

absl::StatusOr<LinearForwardOutcome> CopyingCompute::RunForward(const LinearForwardPlan& plan,
                                                                const HostedLayer& layer,
                                                                HostBuffer x,
                                                                MutableMatrixView y) const {
  CopyRows({x.data(), plan.activation, plan.tokens, layer.weight->shape.in}, y);
  LinearForwardOutcome outcome;
  outcome.path = plan.path;
  if (plan.mode.save_for_backward) {
    auto saved = SaveOperand(plan, layer, std::move(x));
    if (!saved.ok()) return saved.status();
    outcome.saved = *std::move(saved);
  }
  return outcome;
}

absl::StatusOr<std::shared_ptr<const SavedOperand>> CopyingCompute::SaveOperand(
    const LinearForwardPlan& plan, const HostedLayer& layer, HostBuffer x) const {
  auto saved = std::make_shared<SavedOperand>();
  saved->mode = plan.mode;
  saved->weight = layer.weight;
  saved->tokens = plan.tokens;
  saved->activation = plan.activation;
  x.ChargeTo(MemoryUse::kSavedOperands);
  saved->original = std::move(x);
  return saved;
}

absl::StatusOr<LinearBackwardPlan> CopyingCompute::PlanBackward(absl::string_view,
                                                                const SavedOperand&,
                                                                LinearGradients wanted) const {
  LinearBackwardPlan plan;
  plan.wanted = wanted;
  return plan;
}

absl::StatusOr<LinearBackwardPlan> CopyingCompute::RunBackward(
    const LinearBackwardPlan& plan, const SavedOperand& operand, MatrixView dy,
    MutableMatrixView dx, MutableMatrixView dw, MutableMatrixView db) const {
  if (plan.wanted.input) CopyRows(dy, dx);
  if (plan.wanted.weight) {
    std::fill_n(static_cast<float*>(dw.data), dw.elements(), static_cast<float>(operand.tokens));
  }
  if (plan.wanted.bias) std::fill_n(static_cast<float*>(db.data), db.elements(), 0.0f);
  return plan;
}

}  // namespace planewise
