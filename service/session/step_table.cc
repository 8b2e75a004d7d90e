#include "service/session/step_table.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "service/session/session_error.h"

namespace planewise {

absl::StatusOr<const WeightLease*> StepTable::Find(StepId step, absl::string_view model) const {
  const auto pins = pins_.find(step);
  if (pins == pins_.end()) return nullptr;
  const auto pin = pins->second.find(std::string(model));
  if (pin == pins->second.end()) return nullptr;
  if (!pin->second.valid()) {
    return Error(Reason::kLeaseRevoked,
                 absl::StrCat("step ", step.value(), ": its version of model \"", model,
                              "\" was given up for newer ones; end the step and begin again"))
        .With("model", model)
        .With("step", static_cast<int64_t>(step.value()));
  }
  return &pin->second;
}

absl::Status StepTable::CheckRoom(StepId step) const {
  if (pins_.contains(step) || size() < limits_.open_steps_max) return absl::OkStatus();
  return QuotaExceeded(absl::StrCat("step ", step.value()),
                       absl::StrCat(size(), " steps are open already; end some"),
                       "open_steps_max", limits_.open_steps_max);
}

void StepTable::Pin(StepId step, absl::string_view model, WeightLease lease) {
  pins_[step].insert_or_assign(std::string(model), std::move(lease));
}

}  // namespace planewise
